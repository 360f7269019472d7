//! The EDI cases met in the field, each as the value that is right for it.

mod common;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use common::{edifact, key, key_with, sample, x12};
use lambda_inbox_edi::{
    EdiError, Interchange, KeyOptions, Party, Usage, identities, identity, line_end_blind,
    x12_control_number,
};

const X01: (&str, &str) = ("x12:P:ZZ:ACMESUPPLY:01:123456789", "000000905");
const U01: (&str, &str) = ("edifact:P:ZZ:ACMESUPPLY:14:4012345000009", "417");

fn assert_key(body: impl AsRef<[u8]>, expected: (&str, &str)) {
    let (source, message_id) = key(body);
    assert_eq!((source.as_str(), message_id.as_str()), expected);
}

fn fingerprint(body: impl AsRef<[u8]>) -> Vec<u8> {
    let mut fed = Vec::new();
    line_end_blind(body.as_ref(), |piece| fed.extend_from_slice(piece));
    fed
}

/// F-01: both standards count the receiver among what identifies an interchange.
#[test]
fn the_same_number_to_another_receiver_is_another_interchange() {
    assert_key(sample("X-01"), X01);
    assert_key(
        sample("X-09"),
        ("x12:P:ZZ:ACMESUPPLY:01:987654321", "000000905"),
    );
    let other = sample("U-01").replace("4012345000009", "4055555000007");
    assert_key(sample("U-01"), U01);
    assert_key(other, ("edifact:P:ZZ:ACMESUPPLY:14:4055555000007", "417"));
    assert_key(
        sample("U-08"),
        ("edifact:P:ZZ:GLOBEX:14:4012345000009", "417"),
    );
}

/// F-02: a number that started over has the old key but other content, and a key of its own once
/// date and time are added.
#[test]
fn a_reused_number_shows_in_the_fingerprint_or_by_date_and_time() {
    assert_key(sample("X-10"), X01);
    assert_ne!(fingerprint(sample("X-10")), fingerprint(sample("X-01")));
    let dated = KeyOptions {
        with_date_time: true,
        ..KeyOptions::default()
    };
    assert_eq!(key_with(sample("X-01"), dated).1, "000000905:260105 0930");
    assert_eq!(key_with(sample("X-10"), dated).1, "000000905:270105 0931");
    assert_eq!(
        key_with(sample("U-06"), dated).1,
        "IC4-000017:20260105 0930"
    );
}

/// F-05: a line feed as segment terminator; also carriage returns, and both.
#[test]
fn a_line_end_may_be_the_segment_terminator() {
    for line_end in ["\n", "\r", "\r\n"] {
        let body = sample("X-02").replace('\n', line_end);
        assert_key(&body, X01);
        let both = format!("{body}{}", body.replace("000000905", "000000906"));
        assert_eq!(
            identities(both.as_bytes()).unwrap().len(),
            2,
            "{line_end:?}"
        );
    }
}

/// F-07: CRLF after the terminator is cosmetic.
#[test]
fn line_ends_after_the_terminator_change_neither_key_nor_fingerprint() {
    assert_key(sample("X-04"), X01);
    assert_eq!(fingerprint(sample("X-04")), fingerprint(sample("X-01")));
}

/// F-08: odd separators, ids that hold other signs, and a missing last element, with or without
/// the separator before it and whatever the terminator is.
#[test]
fn odd_separators_and_a_missing_isa16_leave_the_identity_readable() {
    assert_key(
        sample("X-05"),
        ("x12:P:ZZ:A*B FOODS:01:123456789", "000000905"),
    );
    let test = ("x12:T:ZZ:ACMESUPPLY:01:123456789", "000000905");
    let x20 = sample("X-20");
    let variants = [
        x20.clone(),
        x20.replace("_T_\n", "_T\n"),
        x20.replace("_T_\n", "_T_\r\n"),
        x20.replace('\n', "~"),
        x20.replace('\n', "~").replace("_T_~", "_T~"),
        x20.replace('_', "\u{1d}").replace('\n', "\u{1c}"),
    ];
    for body in variants {
        assert_key(&body, test);
        let both = [body.clone(), body.clone()].concat();
        let refused = identity(both.as_bytes());
        assert_eq!(
            refused,
            Err(EdiError::SeveralInterchanges { at: body.len() }),
            "{body}"
        );
    }
}

/// F-08: the signs of EDIFACT may be declared, or follow from character set level B.
#[test]
fn edifact_separators_come_from_una_or_the_character_set_level() {
    let plain = sample("U-01");
    let declared = plain.replace(':', ";").replace('+', "*").replace('\'', "~");
    assert_key(format!("UNA;*,? ~{declared}"), U01);
    assert_key(format!("UNA;*,  ~{declared}"), U01);
    for line_end in ["\n", "\r", "\r\n"] {
        assert_key(format!("UNA:+.? \n{}", plain.replace('\'', line_end)), U01);
    }
    let level_b = plain
        .replace(':', "\u{1f}")
        .replace('+', "\u{1d}")
        .replace('\'', "\u{1c}");
    assert_key(level_b.replace("UNOA", "UNOB"), U01);
}

/// F-10: trailing blanks are padding, and ISA13 is nine digits, whatever the trailer says.
#[test]
fn padding_goes_and_x12_numbers_have_nine_digits() {
    assert_key(
        sample("X-07"),
        ("x12:P:ZZ:ACMESUPPLY:ZZ:GLOBEX", "000000906"),
    );
    assert_key(sample("X-08"), X01);
    assert_key(
        sample("X-01").replace("IEA*1*000000905", "IEA*1*000000111"),
        X01,
    );
    for unpadded in ["905      ", "      905"] {
        assert_key(sample("X-01").replacen("000000905", unpadded, 1), X01);
    }
    let leading = sample("X-01").replace("ACMESUPPLY     ", "  ACMESUPPLY   ");
    assert_key(leading, ("x12:P:ZZ:  ACMESUPPLY:01:123456789", "000000905"));
}

/// F-10: a translator's JSON integer 905 gives the key of the raw header.
#[test]
fn a_translated_x12_header_has_the_key_of_the_raw_one() {
    let translated = Interchange::x12(
        Party::new("ZZ", "ACMESUPPLY"),
        Party::new("01", "123456789"),
        Usage::Production,
        &serde_json::json!(905).to_string(),
    )
    .unwrap();
    assert_eq!(
        common::key_of(&translated, KeyOptions::default()),
        key(sample("X-01"))
    );
    assert_eq!(x12_control_number("905").unwrap(), "000000905");
    assert_eq!(x12_control_number("999999999").unwrap(), "999999999");
    for refused in ["", "  ", "0000000905", "-905", "9O5", "905.0", "٩٠٥"] {
        assert!(x12_control_number(refused).is_err(), "{refused:?}");
    }
}

/// F-11: EDIFACT references are text.
#[test]
fn leading_zeros_of_an_edifact_reference_are_significant() {
    let padded = sample("U-02");
    let source = "edifact:P:14:4098765000010:14:4012345000009";
    assert_key(&padded, (source, "00000417"));
    assert_key(padded.replace("00000417", "417"), (source, "417"));
}

/// F-12: test and production share numbers.
#[test]
fn test_and_production_have_different_keys() {
    assert_key(
        sample("X-11"),
        ("x12:T:ZZ:ACMESUPPLY:01:123456789", "000000905"),
    );
    assert_eq!(
        identity(sample("X-11").as_bytes()).unwrap().usage(),
        Usage::Test
    );
    assert_eq!(
        identity(sample("X-01").as_bytes()).unwrap().usage(),
        Usage::Production
    );

    let test = sample("U-12");
    assert_key(&test, ("edifact:T:ZZ:ACMESUPPLY:ZZ:GLOBEX", "REF77"));
    let production = ("edifact:P:ZZ:ACMESUPPLY:ZZ:GLOBEX", "REF77");
    assert_key(test.replace("++1++1'", "++1++0'"), production);
    assert_key(test.replace("++1++1'", "++1'"), production);
    assert_eq!(
        identity(test.as_bytes()).unwrap().test_indicator(),
        Some("1")
    );
}

/// F-14: a byte order mark, blank lines and stray signs before the header.
#[test]
fn stray_signs_before_the_header_change_neither_key_nor_fingerprint() {
    assert_key(sample("X-13"), X01);
    assert_eq!(fingerprint(sample("X-13")), fingerprint(sample("X-01")));
    let u11 = ("edifact:P:ZZ:ACMESUPPLY:ZZ:GLOBEX", "A1");
    assert_key(sample("U-11"), u11);
    assert_key(sample("U-11").trim_start_matches('\''), u11);
    for stray in ["\u{feff}", " \t", "\r\n\n", "'", "\u{feff}'\r\n \u{feff}"] {
        assert_key(format!("{stray}{}", sample("U-01")), U01);
        assert_key(format!("{}{stray}", sample("U-01")), U01);
        assert_key(format!("{stray}{}{stray}", sample("X-01")), X01);
    }
}

/// F-14: what is not named as tolerated is refused.
#[test]
fn other_signs_before_the_header_are_refused() {
    for stray in ["\"", ".", "~", "x", "\u{a0}", "\0"] {
        for body in [sample("X-01"), sample("U-01")] {
            let refused = identity(format!("{stray}{body}").as_bytes());
            assert!(
                matches!(refused, Err(EdiError::NotAnInterchange { .. })),
                "{stray:?}"
            );
        }
    }
}

/// F-16: letters inside names, and TA1 before GS.
#[test]
fn isa_inside_names_and_a_leading_ta1_leave_one_interchange() {
    for id in ["X-15", "X-18"] {
        assert_key(sample(id), X01);
        assert_eq!(identities(sample(id).as_bytes()).unwrap().len(), 1, "{id}");
    }
}

/// F-18: released signs are data, and a needless release sign goes.
#[test]
fn released_signs_belong_to_the_values() {
    let it = identity(sample("U-04").as_bytes()).unwrap();
    assert_eq!((it.sender().id(), it.control()), ("ACME+CO:NORTH", "R'1"));
    assert_key(
        sample("U-04"),
        ("edifact:P:ZZ:ACME+CO%3ANORTH:ZZ:GLOBEX", "R'1"),
    );
    assert_key(
        sample("U-17"),
        ("edifact:P:ZZ:support@ACME:ZZ:GLOBEX", "E1"),
    );
    assert_key(edifact("WHY??"), (U01.0, "WHY?"));
}

/// F-19: syntax 4, UNOY, UNOL: the syntax identifier is no part of the identity.
#[test]
fn any_syntax_identifier_is_accepted() {
    assert_key(sample("U-06"), (U01.0, "IC4-000017"));
    assert_key(sample("U-16"), ("edifact:P:ZZ:ACMESUPPLY:ZZ:GLOBEX", "FR1"));
    for syntax in ["UNOA:1", "UNOY:4::7", "KECA:1", "?", ""] {
        assert_key(
            sample("U-01").replace("UNOA:1", &syntax.replace('?', "??")),
            U01,
        );
    }
}

/// F-20: internal routing belongs to S002 and S003, unless told otherwise.
#[test]
fn internal_routing_ids_make_another_interchange_unless_ignored() {
    let routed = "edifact:P:ZZ:ACMESUPPLY/DEPT7:14:4012345000009/PLANT2";
    assert_key(sample("U-10"), (routed, "417"));
    let ignoring = KeyOptions {
        ignore_internal_routing: true,
        ..KeyOptions::default()
    };
    assert_eq!(key_with(sample("U-10"), ignoring), key(sample("U-01")));
    let deeper = sample("U-10").replace("DEPT7", "DEPT7:DESK1");
    assert_eq!(
        key(&deeper).0,
        "edifact:P:ZZ:ACMESUPPLY/DEPT7/DESK1:14:4012345000009/PLANT2"
    );
    assert_eq!(key_with(&deeper, ignoring), key(sample("U-01")));
}

/// F-21: the same id in Latin-1 and in UTF-8.
#[test]
fn latin_1_and_utf_8_of_one_interchange_agree_in_key_and_fingerprint() {
    let latin1 = STANDARD
        .decode("VU5CK1VOT0M6MytN3ExMRVIgTE9HSVNUSUs6WlorR0xPQkVYOlpaKzI2MDEwNTowOTMwK0wxJ1VOWiswK0wxJw==")
        .unwrap();
    assert_key(&latin1, ("edifact:P:ZZ:MÜLLER LOGISTIK:ZZ:GLOBEX", "L1"));
    assert_eq!(key(&latin1), key(sample("U-14")));
    assert_eq!(fingerprint(&latin1), fingerprint(sample("U-14")));
}

/// F-23: what is no interchange is refused, with its first bytes and the fix.
#[test]
fn what_is_no_interchange_is_refused_with_its_first_bytes_and_the_fix() {
    let cases = [
        (
            "{\"order\": \"0123456789\"}",
            "\"{\\\"order\\\": \\\"01234\"",
            "JSON",
        ),
        (
            "order;date;amount\n1;2;3\n",
            "\"order;date;amoun\"",
            "ISA, UNA or UNB",
        ),
        ("UNH+1+ORDERS:D:96A:UN'", "\"UNH+1+ORDERS:D:9\"", "UNB"),
        (
            "GS*PO*ACME*GLOBEX*20260105~",
            "\"GS*PO*ACME*GLOBE\"",
            "from ISA to IEA",
        ),
        (
            "UNG+ORDERS+A+B+260105:0930+1'",
            "\"UNG+ORDERS+A+B+2\"",
            "UNB",
        ),
        ("<order/>", "\"<order/>\"", "XML"),
        ("SVNBKjAwKg==", "\"SVNBKjAwKg==\"", "base64"),
        ("unb+UNOA:1+A+B'", "\"unb+UNOA:1+A+B\\'\"", "upper case"),
        ("I\0S\0A\0*\0", "\"I\\x00S\\x00A\\x00*\\x00\"", "UTF-16"),
        ("Überweisung", "\"\\xc3\\x9cberweisung\"", "ISA, UNA or UNB"),
    ];
    for (body, shown, fix) in cases {
        let error = identity(body.as_bytes()).unwrap_err();
        assert!(
            matches!(error, EdiError::NotAnInterchange { .. }),
            "{body}: {error:?}"
        );
        let text = error.to_string();
        assert!(text.contains(shown) && text.contains(fix), "{text}");
        assert_eq!(identities(body.as_bytes()), Err(error));
    }
    let refused = identity(sample("X-19").as_bytes()).unwrap_err().to_string();
    assert!(
        refused.contains("upper case") && !refused.contains("ACMESUPPLY"),
        "{refused}"
    );
    for blank in ["", " \r\n", "\u{feff}", "'"] {
        assert_eq!(
            identity(blank.as_bytes()),
            Err(EdiError::Empty),
            "{blank:?}"
        );
    }
}

/// F-25: group and message numbers repeat across interchanges.
#[test]
fn equal_group_numbers_in_two_interchanges_give_two_keys() {
    assert_key(x12(905), X01);
    assert_key(x12(906), (X01.0, "000000906"));
    assert_key(edifact("417"), U01);
    assert_key(edifact("418"), (U01.0, "418"));
}
