//! One body, several interchanges: all are listed, and none gets a key that hides another.

#![allow(clippy::unwrap_used, reason = "the helpers are part of the tests")]

mod common;

use common::{edifact, isa, sample, unb, x12};
use lambda_inbox_edi::{EdiError, first_header, identities, identity};

fn controls(body: &str) -> Vec<String> {
    let found = identities(body.as_bytes()).unwrap_or_else(|error| panic!("{error}: {body}"));
    found.iter().map(|it| it.control().to_owned()).collect()
}

fn assert_two(body: &str, expected: [&str; 2]) {
    assert_eq!(controls(body), expected, "{body}");
    let refused = identity(body.as_bytes());
    assert!(
        matches!(refused, Err(EdiError::SeveralInterchanges { .. })),
        "{refused:?}: {body}"
    );
    assert_eq!(
        first_header(body.as_bytes()).unwrap().control(),
        expected[0]
    );
}

fn assert_one(body: &str, expected: &str) {
    assert_eq!(controls(body), [expected], "{body}");
    assert_eq!(identity(body.as_bytes()).unwrap().control(), expected);
}

#[test]
fn interchanges_in_a_row_are_all_listed_in_order() {
    let other_signs = x12(906).replace('*', "|").replace('~', "\n");
    for between in ["", "\r\n", " \n\u{feff}", "'"] {
        assert_two(
            &[&x12(905), between, &x12(906)].concat(),
            ["000000905", "000000906"],
        );
        assert_two(
            &[&x12(905), between, &other_signs].concat(),
            ["000000905", "000000906"],
        );
        assert_two(
            &[&other_signs, between, &x12(905)].concat(),
            ["000000906", "000000905"],
        );
        assert_two(
            &[&edifact("1"), between, &edifact("2")].concat(),
            ["1", "2"],
        );
        assert_two(
            &[&edifact("1"), between, "UNA:+.? '", &edifact("2")].concat(),
            ["1", "2"],
        );
        assert_two(
            &[&x12(905), between, &edifact("2")].concat(),
            ["000000905", "2"],
        );
        assert_two(
            &[&edifact("1"), between, &x12(905)].concat(),
            ["1", "000000905"],
        );
    }
}

#[test]
fn two_interchanges_with_one_number_are_still_two() {
    assert_two(&x12(905).repeat(2), ["000000905", "000000905"]);
    assert_two(&edifact("417").repeat(2), ["417", "417"]);
}

#[test]
fn a_missing_trailer_or_terminator_hides_no_second_interchange() {
    let x12_start = x12(905).replace("IEA*1*000000905~", "");
    assert_two(
        &[x12_start.clone(), x12(906)].concat(),
        ["000000905", "000000906"],
    );
    assert_two(&[unb("1"), edifact("2")].concat(), ["1", "2"]);
    for between in ["", "\n", "\r\n "] {
        let unterminated = x12(905).trim_end_matches('~').to_owned();
        assert_two(
            &[&unterminated, between, &x12(906)].concat(),
            ["000000905", "000000906"],
        );
        let unterminated = edifact("1").trim_end_matches('\'').to_owned();
        assert_two(
            &[&unterminated, between, &edifact("2")].concat(),
            ["1", "2"],
        );
        assert_two(
            &[&unterminated, between, "UNA:+.? '", &edifact("2")].concat(),
            ["1", "2"],
        );
    }
}

#[test]
fn a_body_cut_off_within_a_segment_hides_no_second_interchange() {
    let cut = "N1*BY*TRUNC";
    let x12_start = isa("ACMESUPPLY", "123456789", "000000905") + cut;
    let second_signs = x12(906).replace('*', "|").replace('~', "'");
    assert_two(
        &format!("{x12_start}{}", x12(906)),
        ["000000905", "000000906"],
    );
    assert_two(
        &format!("{x12_start}\n{second_signs}"),
        ["000000905", "000000906"],
    );
    assert_two(
        &format!("{x12_start}\n{}", edifact("2")),
        ["000000905", "2"],
    );
    let edifact_start = unb("1") + "FTX+AAI+++TRUNC";
    assert_two(&format!("{edifact_start}{}", edifact("2")), ["1", "2"]);
    assert_two(&format!("{edifact_start}??{}", edifact("2")), ["1", "2"]);
    let second = edifact("2")
        .replace('+', "*")
        .replace(':', ";")
        .replace('\'', "~");
    assert_two(&format!("{edifact_start}\nUNA;*.? ~{second}"), ["1", "2"]);
}

#[test]
fn header_tags_inside_text_are_text() {
    let x12_with = |segment: &str| x12(905).replace("GE*", &format!("{segment}~GE*"));
    for segment in [
        "N1*BY*ISA",
        "N1*ISA*BY",
        "ISA LANE*4711",
        "N3*ISA LANE\nISABEL",
        "ISAX*1",
        "NTE**IEA",
        "IEAX*1",
        // A quoted header is data while its separators are others than those in force.
        &format!(
            "NTE**GOT {}",
            isa("A", "B", "1").replace('*', "|").replace('~', "")
        ),
    ] {
        assert_one(&x12_with(segment), "000000905");
    }
    let edifact_with = |segment: &str| edifact("417").replace("UNT+", &format!("{segment}'UNT+"));
    for segment in [
        "FTX+AAI+++UNB",
        "FTX+AAI+++IT?'S ?'UNZ?+1?+417",
        // After a released terminator this is still the same segment.
        "FTX+AAI+++SAY ?'UNB+UNOC:3+A:ZZ+B:ZZ+260105:0930+9",
        "FTX+AAI+++SAY ???'UNB+UNOC:3+A:ZZ+B:ZZ+260105:0930+9",
        "FTX+AAI+++SAY ?UNB+UNOC:3+A:ZZ+B:ZZ+260105:0930+9",
        "NAD+UNB+4012345000009::9+X+NAME+STREET+CITY",
        "UNBX+1",
    ] {
        assert_one(&edifact_with(segment), "417");
    }
    // Two release characters are one as data, so the terminator after them stands.
    let unreleased = edifact_with("FTX+AAI+++WHY??'UNB+UNOC:3+A:ZZ+B:ZZ+260105:0930+9");
    assert_two(&unreleased, ["417", "9"]);
}

#[test]
fn an_unreadable_second_header_is_refused_not_passed_over() {
    for second in ["ISA*00*cut off", "ISA*", "ISA"] {
        let inside = x12(905).replace("GE*", &format!("{second}~GE*"));
        for body in [inside, x12(905) + second] {
            let refused = identity(body.as_bytes());
            assert!(
                matches!(refused, Err(EdiError::SeveralInterchanges { .. })),
                "{refused:?}"
            );
            let refused = identities(body.as_bytes());
            assert!(
                matches!(refused, Err(EdiError::Header { at: 1.., .. })),
                "{refused:?}"
            );
        }
    }
    for second in ["UNB+UNOA:1+A", "UNA:+.? 'UNB+", "UNA;*", "UNA", "UNB"] {
        let inside = edifact("1").replace("UNT+", &format!("{second}'UNT+"));
        for body in [inside, edifact("1") + second] {
            let refused = identity(body.as_bytes());
            assert!(
                matches!(refused, Err(EdiError::SeveralInterchanges { .. })),
                "{refused:?}"
            );
            let refused = identities(body.as_bytes());
            assert!(
                matches!(refused, Err(EdiError::Header { at: 1.., .. })),
                "{refused:?}"
            );
        }
    }
}

#[test]
fn anything_else_after_the_trailer_is_refused() {
    for rest in ["isa*00*", "GS*PO*A~", "UNH+1+ORDERS'", "{}", "."] {
        for body in [x12(905), edifact("1")] {
            let at = body.len();
            let body = body + "\r\n" + rest;
            let refused = identity(body.as_bytes());
            let expected = matches!(&refused, Err(EdiError::TrailingContent { at: found, .. })
                if *found == at + 2);
            assert!(expected, "{refused:?}: {body}");
            assert_eq!(
                identities(body.as_bytes()).unwrap_err(),
                refused.unwrap_err()
            );
        }
    }
}

#[test]
fn stray_terminators_after_the_trailer_are_passed_over() {
    assert_one(&(x12(905) + "~\r\n~"), "000000905");
    assert_one(&(edifact("1") + "'\r\n'"), "1");
    assert_two(
        &[&x12(905), "~\n", &x12(906)].concat(),
        ["000000905", "000000906"],
    );
}

#[test]
fn an_interchange_without_its_trailer_is_identified_by_its_header() {
    assert_one(&isa("ACMESUPPLY", "123456789", "000000905"), "000000905");
    assert_one(&x12(905).replace("IEA*1*000000905~", ""), "000000905");
    assert_one(x12(905).trim_end_matches('~'), "000000905");
    assert_one(&unb("417"), "417");
    assert_one(sample("U-01").trim_end_matches('\''), "417");
}

#[test]
fn tags_are_recognised_across_hard_line_wraps() {
    let wrapped_trailer = edifact("1").replace("UNZ", "UN\r\nZ");
    assert_one(&wrapped_trailer, "1");
    let body = unb("1") + "FTX+AAI'" + &edifact("2").replacen("UNB", "U\r\nNB", 1);
    let refused = identity(body.as_bytes());
    assert!(
        matches!(refused, Err(EdiError::SeveralInterchanges { .. })),
        "{refused:?}"
    );
}

#[test]
fn only_the_header_is_needed_for_the_first_identity() {
    for (header, control) in [
        (unb("417"), "417"),
        (isa("A", "B", "000000905"), "000000905"),
    ] {
        let mut body = header.into_bytes();
        body.extend(std::iter::repeat_n(0xFF, 1_000_000));
        assert_eq!(first_header(&body).unwrap().control(), control);
    }
}
