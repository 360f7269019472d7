//! What a gateway does to line ends does not change the fingerprint; other changes do.

mod common;

use common::{edifact, sample, x12};
use lambda_inbox_edi::line_end_blind;

fn pieces(body: impl AsRef<[u8]>) -> Vec<u8> {
    let mut fed = Vec::new();
    line_end_blind(body.as_ref(), |piece| fed.extend_from_slice(piece));
    fed
}

fn wrapped(body: &str, columns: usize) -> String {
    let (header, rest) = body.split_at(106);
    let rest: Vec<char> = rest.chars().collect();
    let lines: Vec<String> = rest
        .chunks(columns)
        .map(|line| line.iter().collect())
        .collect();
    format!("{header}\r\n{}", lines.join("\r\n"))
}

#[test]
fn cosmetic_line_ends_make_no_difference() {
    let bodies = ["X-01", "X-05", "U-02", "U-04", "U-11"].map(sample);
    for body in bodies {
        let (before, terminator) = body.trim_end().split_at(body.trim_end().len() - 1);
        let plain: String = body.replace(['\r', '\n'], "");
        for variant in [
            plain.clone(),
            plain
                .replace(terminator, &format!("{terminator}\r\n"))
                .replace("?'\r\n", "?'")
                .replace(" '\r\nUNB", " '\r\n\r\nUNB"),
            format!("\u{feff}\r\n{body}\r\n"),
            before.to_owned(),
        ] {
            let same = pieces(&variant) == pieces(&body);
            assert!(same, "{variant:?} differs from {body:?}");
        }
    }
}

#[test]
fn hard_wrapping_after_the_header_makes_no_difference() {
    let body = sample("X-15");
    for columns in [7, 80] {
        assert_eq!(pieces(wrapped(&body, columns)), pieces(&body), "{columns}");
    }
}

#[test]
fn line_ends_that_terminate_segments_count_as_one_whatever_they_are() {
    let body = sample("X-02");
    for line_end in ["\r", "\r\n", "\n\n", "\n \n"] {
        let other = body.replace('\n', line_end);
        assert_eq!(pieces(&other), pieces(&body), "{line_end:?}");
    }
    assert_eq!(pieces(body.trim_end()), pieces(&body));
    // The line end still separates: without it two segments would become one.
    assert_ne!(pieces(body.replace("0001\nSE", "0001SE")), pieces(&body));
    assert_ne!(
        pieces(body.replace("850*0001\n", "850*000\n1")),
        pieces(&body)
    );
}

#[test]
fn every_other_change_is_seen() {
    let x12 = x12(905);
    for (old, new) in [
        ("*B*", "*C*"),
        ("*A*", "* A*"),
        ("GE*0", "GE*00"),
        ("~GE", "GE"),
        ("A*B", "AB*"),
    ] {
        assert_ne!(
            pieces(x12.replace(old, new)),
            pieces(&x12),
            "{old} to {new}"
        );
    }
    let edifact = edifact("1");
    for (old, new) in [
        ("UNT+2", "UNT+3"),
        ("ORDERS", "ORDERS "),
        ("UN'", "UN?'"),
        ("UN'UNT", "?' UNT"),
    ] {
        assert_ne!(
            pieces(edifact.replace(old, new)),
            pieces(&edifact),
            "{old} to {new}"
        );
    }
    // A blank after a released terminator is data.
    let released = edifact.replace("ORDERS", "A?' B");
    assert_ne!(pieces(released.replace("?' B", "?'B")), pieces(&released));
}

#[test]
fn latin_1_is_fed_as_utf_8_whatever_stands_before_the_header() {
    let utf8 = format!("\u{feff}{}", edifact("1").replace("ORDERS", "GRÖSSE"));
    let latin1: Vec<u8> = utf8
        .chars()
        .skip(1)
        .map(|c| u8::try_from(c).expect("all of it is Latin-1"))
        .collect();
    let marked = [b"\xEF\xBB\xBF".as_slice(), &latin1].concat();
    assert_eq!(pieces(&latin1), pieces(&utf8));
    assert_eq!(pieces(&marked), pieces(&utf8));
}

#[test]
fn a_body_without_a_readable_header_is_fed_as_it_is() {
    for body in [b"".as_slice(), b"{\"a\":\r\n1}", b"ISA*\r\n", b"\xFF\r\n"] {
        assert_eq!(pieces(body), body);
    }
}
