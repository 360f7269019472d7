//! Malformed headers are refused with what is wrong; unusual ones are read.

mod common;

use common::{edifact, isa, x12};
use lambda_inbox_edi::{EdiError, HeaderFault, Standard, first_header, identity};

fn fault(body: impl AsRef<[u8]>) -> HeaderFault {
    match identity(body.as_ref()) {
        Err(EdiError::Header { fault, at: 0, .. }) => fault,
        other => panic!("{other:?}: {}", body.as_ref().escape_ascii()),
    }
}

#[test]
fn a_header_cut_off_anywhere_is_refused() {
    let isa = isa("ACMESUPPLY", "123456789", "000000905");
    for end in 3..isa.len() {
        assert_eq!(
            fault(&isa[..end]),
            HeaderFault::Unterminated,
            "{}",
            &isa[..end]
        );
    }
    let unb = "UNA:+.? '\r\nUNB+UNOC:3+A:ZZ+B?':ZZ+260105:0930+417'";
    for end in 3..unb.len() {
        assert_eq!(
            fault(&unb[..end]),
            HeaderFault::Unterminated,
            "{}",
            &unb[..end]
        );
    }
}

#[test]
fn a_broken_fixed_length_layout_names_the_place() {
    let body = x12(905);
    assert_eq!(
        fault(body.replacen("ACMESUPPLY     *", "ACMESUPPLY*", 1)),
        HeaderFault::Layout { offset: 50 }
    );
    assert_eq!(
        fault(body.replacen("*00*", "*000*", 1)),
        HeaderFault::Layout { offset: 6 }
    );
    let wrapped = format!("{}\r\n{}", &body[..80], &body[80..]);
    assert_eq!(fault(wrapped), HeaderFault::Layout { offset: 81 });
    assert_eq!(
        fault(body.replacen("ACMESUPPLY ", "ACME\nSUPPLY", 1)),
        HeaderFault::LineEnd
    );
    assert_eq!(
        fault(body.replacen("P*:~", "\n\n\nGS", 1)),
        HeaderFault::LineEnd
    );
}

#[test]
fn signs_that_cannot_separate_are_refused() {
    let x12_cases = [
        x12(905).replace('*', "X"),
        x12(905).replace('*', " "),
        x12(905).replacen(":~", "*~", 1),
        x12(905).replacen(":~", "::", 1),
        x12(905).replacen(":~", ":*", 1),
    ];
    let edifact_cases = [
        format!("UNA++.? '{}", edifact("1")),
        format!("UNA:+.+ '{}", edifact("1")),
        format!("UNAX+.? '{}", edifact("1")),
        format!("UNA:+.?'{}", edifact("1")),
        format!("UNA:+.?\r\n{}", edifact("1")),
        format!("UNA:*.? '{}", edifact("1")),
        edifact("1").replace('+', "*"),
        "UNBELIEVABLE'".to_owned(),
    ];
    for body in x12_cases.into_iter().chain(edifact_cases) {
        assert_eq!(fault(&body), HeaderFault::Signs, "{body}");
    }
}

#[test]
fn a_line_end_inside_unb_is_refused_rather_than_read_as_part_of_a_value() {
    // Without the apostrophes the reference would become `417UNH`.
    let lines = "UNB+UNOA:1+A:ZZ+B:14+260105:0930+417\r\nUNH+1+ORDERS:D:96A:UN'";
    assert_eq!(fault(lines), HeaderFault::LineEnd);
    assert_eq!(
        fault(edifact("1").replace("ACME", "AC\nME")),
        HeaderFault::LineEnd
    );
    assert_eq!(
        fault(edifact("1").replace("ACME", "AC?\nME")),
        HeaderFault::LineEnd
    );
}

#[test]
fn an_empty_mandatory_value_makes_no_shared_key() {
    let cases = [
        (
            x12(905).replacen("ACMESUPPLY", "          ", 1),
            "ISA06 is empty",
        ),
        (
            x12(905).replacen("123456789", "         ", 1),
            "ISA08 is empty",
        ),
        (
            x12(905).replacen("000000905", "         ", 1),
            "is no X12 control number",
        ),
        (
            x12(905).replacen("000000905", "00000O905", 1),
            "\"00000O905\" is no X12 control number",
        ),
        (edifact("1").replace("ACMESUPPLY", ""), "0004 is empty"),
        (edifact("1").replace("4012345000009", " "), "0010 is empty"),
        (edifact(""), "0020 is empty"),
        (edifact("  "), "0020 is empty"),
        (edifact("1").replace("+260105:0930+1", ""), "0020 is empty"),
    ];
    for (body, expected) in cases {
        assert!(matches!(fault(&body), HeaderFault::Value(_)), "{body}");
        let text = identity(body.as_bytes()).unwrap_err().to_string();
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn a_unb_of_far_too_many_elements_has_lost_its_terminator() {
    let with = |extra: usize| edifact("1").replacen("+1'", &format!("+1{}'", "+".repeat(extra)), 1);
    assert!(identity(with(10).as_bytes()).is_ok());
    assert_eq!(fault(with(100)), HeaderFault::Unterminated);
}

#[test]
fn una_without_unb_is_refused() {
    assert_eq!(fault("UNA:+.? 'UNH+1+ORDERS:D:96A:UN'"), HeaderFault::NoUnb);
}

#[test]
fn optional_values_may_be_absent() {
    let it = identity(b"UNB+UNOA:1+A+B++7'").unwrap();
    assert_eq!(
        (it.standard(), it.sender().qualifier()),
        (Standard::Edifact, "")
    );
    assert_eq!((it.date_time(), it.test_indicator()), (None, None));
    assert_eq!(
        (it.sender().internal(), it.receiver().internal_sub()),
        (None, None)
    );
}

#[test]
fn padded_edifact_ids_lose_their_blanks_and_the_reference_keeps_its_own() {
    let it = identity(b"UNB+UNOA:1+A   :ZZ +  B +260105+7 '").unwrap();
    assert_eq!((it.sender().id(), it.sender().qualifier()), ("A", "ZZ"));
    assert_eq!((it.receiver().id(), it.control()), ("  B", "7 "));
    assert_eq!(it.date_time(), Some("260105"));
}

#[test]
fn x12_offsets_count_characters_in_either_encoding() {
    let utf8 = isa("MÜLLER", "ÅSA AB", "000000905") + "IEA*0*905~";
    let latin1: Vec<u8> = utf8.chars().map(|c| u8::try_from(c).unwrap()).collect();
    let it = identity(utf8.as_bytes()).unwrap();
    assert_eq!((it.sender().id(), it.receiver().id()), ("MÜLLER", "ÅSA AB"));
    assert_eq!(identity(&latin1).unwrap(), it);
}

#[test]
fn separators_beyond_ascii_work_in_either_encoding() {
    // NEL as terminator, as EBCDIC gateways leave it, and other signs of Latin-1.
    for (element, terminator) in [('*', '\u{85}'), ('¬', '§'), ('\u{1d}', '\u{85}')] {
        let signs = |body: String| {
            body.replace('*', &element.to_string())
                .replace('~', &terminator.to_string())
        };
        // The second sign shares its first byte in UTF-8 with NEL and others.
        let utf8 = signs(x12(905).replace("PO*A", "PO*\u{a3}*A"));
        let latin1 = |text: &str| {
            text.chars()
                .map(|c| u8::try_from(c).unwrap())
                .collect::<Vec<_>>()
        };
        for body in [utf8.clone().into_bytes(), latin1(&utf8)] {
            assert_eq!(identity(&body).unwrap().control(), "000000905");
            let followed = identity(&[&body, b"{}".as_slice()].concat());
            assert!(
                matches!(followed, Err(EdiError::TrailingContent { .. })),
                "{followed:?}"
            );
            let twice = identity(&body.repeat(2));
            assert_eq!(twice, Err(EdiError::SeveralInterchanges { at: body.len() }));
        }
    }
}

#[test]
fn bytes_after_the_header_have_no_say_in_its_encoding() {
    let mut body = edifact("1").replace("ACME", "ÜBER").into_bytes();
    body.splice(body.len() - 1..body.len() - 1, [0xFC]);
    assert_eq!(first_header(&body).unwrap().sender().id(), "ÜBERSUPPLY");
    // Valid UTF-8 is read as such even if Latin-1 was meant: the documented ambiguity.
    let ambiguous = [b"UNB+UNOC:3+\xC3\xBC+B+260105+7'".as_slice()].concat();
    assert_eq!(first_header(&ambiguous).unwrap().sender().id(), "ü");
    // Padded to bytes, this has valid bytes but the wrong length; what follows does not change that.
    let mut padded = isa("ABCDEFGHIJKLM\u{fc}", "B", "1").replace("\u{fc} *", "\u{fc}*");
    assert_eq!(fault(&padded), HeaderFault::Layout { offset: 50 });
    padded.push_str("GS*PO~");
    let followed = [padded.as_bytes(), b"\xFC~"].concat();
    assert_eq!(fault(followed), HeaderFault::Layout { offset: 50 });
    let decided_by_another_value = b"UNB+UNOC:3+\xC3\xBC+\xDC+260105+7'";
    assert_eq!(
        first_header(decided_by_another_value)
            .unwrap()
            .sender()
            .id(),
        "Ã¼"
    );
}

#[test]
fn an_error_shows_no_more_than_sixteen_escaped_bytes() {
    let secret = x12(905).replacen(
        "*00*          *00*          *",
        "*00*\u{1b}[31mSECRET1*00*SECRETSECRET*",
        1,
    );
    let text = identity(secret.as_bytes()).unwrap_err().to_string();
    assert!(
        text.contains("ISA*00*\\x1b[31mSECR\"") && !text.contains("SECRET"),
        "{text}"
    );
    assert!(text.starts_with("malformed X12 header at byte 0"), "{text}");
}
