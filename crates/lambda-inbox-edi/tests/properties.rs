//! What holds for every body and every identity, tried on many.

#![allow(clippy::unwrap_used, reason = "the strategies are part of the tests")]

mod common;

use lambda_inbox_edi::{
    Interchange, KeyOptions, Party, Standard, Usage, first_header, identities, identity,
    line_end_blind, x12_control_number,
};
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// What the key functions see of an interchange: equal keys exactly where this is equal.
fn identifying(it: &Interchange) -> (Standard, &Party, &Party, Usage, &str) {
    (
        it.standard(),
        it.sender(),
        it.receiver(),
        it.usage(),
        it.control(),
    )
}

/// Text dense in signs that separate something, somewhere.
fn tricky(length: std::ops::Range<usize>) -> impl Strategy<Value = String> {
    let signs = select(vec![
        'A', 'B', '1', ':', '/', '%', '?', '+', '\'', '*', '~', ' ', '2', 'F', '\n', '\0', 'ü', '3',
    ]);
    prop::collection::vec(signs, length).prop_map(String::from_iter)
}

/// As [`tricky`], but such as an X12 element can hold, and not blank.
fn fixed(width: usize) -> impl Strategy<Value = String> {
    let text = prop::collection::vec(select("AB1 :?+'ü-".chars().collect::<Vec<_>>()), 0..width);
    text.prop_map(|rest| String::from_iter(std::iter::once('Z').chain(rest)))
}

fn edifact_identity() -> impl Strategy<Value = Interchange> {
    let party = || {
        (tricky(0..3), tricky(1..4), tricky(0..3), tricky(0..3))
            .prop_map(|(q, id, a, b)| Party::new(&q, &id).with_internal(&a, &b))
    };
    (party(), party(), select(vec!["", "0", "1"]), tricky(1..4)).prop_filter_map(
        "an id or reference is blank",
        |(sender, receiver, test, control)| {
            Interchange::edifact(sender, receiver, test, &control).ok()
        },
    )
}

fn x12_identity() -> impl Strategy<Value = Interchange> {
    let party = || (tricky(0..3), tricky(1..4)).prop_map(|(q, id)| Party::new(&q, &id));
    let usages = vec![
        Usage::Production,
        Usage::Test,
        Usage::Information,
        Usage::Unknown('P'),
        Usage::Unknown(':'),
    ];
    (party(), party(), select(usages), 0_u32..3).prop_filter_map(
        "an id is blank",
        |(sender, receiver, usage, control)| {
            Interchange::x12(sender, receiver, usage, &control.to_string()).ok()
        },
    )
}

/// Bytes that get far into the readers: parts of interchanges in any order, some damaged.
fn hostile() -> impl Strategy<Value = Vec<u8>> {
    let samples: Vec<Vec<u8>> = common::samples()
        .iter()
        .map(|it| it["raw"].as_str().unwrap().as_bytes().to_vec())
        .collect();
    let tokens: Vec<Vec<u8>> = [
        "ISA*",
        "UNA:+.? '",
        "UNB+UNOA:1+A+B+1+",
        "?",
        "'",
        "~",
        "\n",
        "IEA*",
        "UNZ+",
        "\u{feff}",
        "\u{85}",
    ]
    .iter()
    .map(|token| token.as_bytes().to_vec())
    .collect();
    let part = prop_oneof![
        (select(samples), any::<Index>(), any::<Index>()).prop_map(|(body, a, b)| {
            let (a, b) = (a.index(body.len() + 1), b.index(body.len() + 1));
            body[a.min(b)..a.max(b)].to_vec()
        }),
        select(tokens),
        prop::collection::vec(any::<u8>(), 0..4),
    ];
    prop::collection::vec(part, 0..8).prop_map(|parts| parts.concat())
}

fn assert_invariants(body: &[u8]) {
    let (first, one, all) = (first_header(body), identity(body), identities(body));
    if let Ok(one) = &one {
        assert_eq!(
            all.as_ref().map(Vec::as_slice),
            Ok(std::slice::from_ref(one))
        );
    }
    if let Ok(all) = &all {
        assert_eq!(first.as_ref().ok(), all.first());
        assert_eq!(one.is_ok(), all.len() == 1);
    }
    if let Err(error) = &first {
        assert_eq!(
            (one.as_ref().err(), all.as_ref().err()),
            (Some(error), Some(error))
        );
        assert!(error.to_string().is_ascii() && error.to_string().len() < 400);
    }
    let mut fed = Vec::new();
    line_end_blind(body, |piece| fed.extend_from_slice(piece));
    if first.is_err() {
        assert_eq!(fed, body);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn arbitrary_bytes_never_panic(body in prop::collection::vec(any::<u8>(), 0..400)) {
        assert_invariants(&body);
    }

    #[test]
    fn parts_of_interchanges_in_any_order_never_panic(body in hostile()) {
        assert_invariants(&body);
    }

    #[test]
    fn two_identities_share_a_key_only_if_they_are_equal(
        a in prop_oneof![edifact_identity(), x12_identity()],
        b in prop_oneof![edifact_identity(), x12_identity()],
    ) {
        for with_date_time in [false, true] {
            let options = KeyOptions { with_date_time, ..KeyOptions::default() };
            let key = |it| common::key_of(it, options);
            prop_assert_eq!(key(&a) == key(&b), identifying(&a) == identifying(&b));
        }
    }

    /// Moving text across a boundary between two values is what a careless join does not see.
    #[test]
    fn moving_signs_between_values_changes_the_key(text in "[AB:/%]{2,8}", a: Index, b: Index) {
        let at = |index: Index| 1 + index.index(text.len() - 1);
        let split = |at: usize| {
            let sender = Party::new(&text[..at], "X");
            let joined = Party::new("", "X").with_internal(&text[..at], &text[at..]);
            let receiver = Party::new(&text[at..], "Y");
            [
                Interchange::edifact(sender, receiver, "", "1").unwrap(),
                Interchange::edifact(joined, Party::new("", "Y"), "", "1").unwrap(),
                Interchange::edifact(Party::new("", &text[..at]), Party::new("", &text[at..]), "", "1").unwrap(),
            ]
        };
        let options = KeyOptions::default();
        for (one, other) in split(at(a)).iter().zip(&split(at(b))) {
            prop_assert_eq!(one.source(&options) == other.source(&options), at(a) == at(b));
        }
    }

    #[test]
    fn an_x12_header_gives_back_what_was_written_into_it(
        sender in fixed(15), receiver in fixed(15), number in 0_u32..=999_999_999,
        usage in select(vec!['P', 'T', 'I', 'x']),
        signs in select(vec![('*', '>', '~'), ('|', '<', '\n'), ('_', '^', '\r'), ('\u{1d}', '\u{1f}', '\u{1c}'), ('¬', '§', '\u{85}')]),
        latin1: bool,
    ) {
        let (e, c, t) = signs;
        let text = format!(
            "ISA{e}00{e}          {e}00{e}          {e}ZZ{e}{sender:<15}{e}01{e}{receiver:<15}{e}\
             260105{e}0930{e}U{e}00401{e}{number:09}{e}0{e}{usage}{e}{c}{t}IEA{e}0{e}{number}{t}"
        );
        let body = if latin1 {
            text.chars().map(|c| u8::try_from(c).unwrap()).collect()
        } else {
            text.into_bytes()
        };
        let it = identity(&body).unwrap();
        prop_assert_eq!(it.sender(), &Party::new("ZZ", &sender));
        prop_assert_eq!(it.receiver(), &Party::new("01", &receiver));
        prop_assert_eq!(it.control(), x12_control_number(&number.to_string()).unwrap());
        prop_assert_eq!((it.usage().code(), it.date_time()), (usage, Some("260105 0930")));
        prop_assert_eq!(identities(&body.repeat(2)).unwrap(), vec![it.clone(), it]);
    }

    #[test]
    fn an_edifact_header_gives_back_what_was_written_into_it(
        values in prop::collection::vec("[A-Z0-9:+?'* ü]{0,6}[A-Z]", 9),
        una: bool,
    ) {
        let release = |text: &String| text.chars().fold(String::new(), |mut out, c| {
            if matches!(c, ':' | '+' | '?' | '\'') { out.push('?') }
            out.push(c);
            out
        });
        let [a, b, c, d, e, f, g, h, control] = values.iter().map(release).collect::<Vec<_>>().try_into().unwrap();
        let advice = if una { "UNA:+.? '\r\n" } else { "" };
        let text = format!(
            "{advice}UNB+UNOC:3+{a}:{b}:{c}:{d}+{e}:{f}:{g}:{h}+260105:0930+{control}'UNZ+0+{control}'"
        );
        let it = identity(text.as_bytes()).unwrap();
        let party = |at: usize| {
            Party::new(&values[at + 1], &values[at]).with_internal(&values[at + 2], &values[at + 3])
        };
        prop_assert_eq!((it.sender(), it.receiver()), (&party(0), &party(4)));
        prop_assert_eq!(it.control(), values[8].as_str());
        prop_assert_eq!(identities(text.repeat(2).as_bytes()).unwrap(), vec![it.clone(), it]);
    }
}
