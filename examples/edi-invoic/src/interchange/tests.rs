//! Interchanges, each with the rows that it makes or the reason why it makes none.

use super::*;

const UNB: &str = "UNB+UNOC:3+ACME:ZZ+GLOBEX:ZZ+260105:0930+417'";
const HEADER: &str = "BGM+380+R-1+9'DTM+137:20260105:102'CUX+2:EUR:4'";

/// An interchange of one INVOIC, with these segments between UNH and UNT.
fn one(content: &str) -> String {
    let count = content.replace("?'", "").matches('\'').count() + 2;
    format!("{UNB}UNH+M1+INVOIC:D:96A:UN'{content}UNT+{count}+M1'UNZ+1+417'")
}

/// One with these segments after the header's.
fn with(rest: &str) -> String {
    one(&format!("{HEADER}{rest}"))
}

fn read(body: &str) -> Vec<String> {
    let invoices = invoices(body).unwrap_or_else(|error| panic!("{error}: {body}"));
    let row = |it: &Invoice| {
        let date = it.date.map_or_else(String::new, |date| date.to_string());
        format!(
            "{} {} {date} {} {}",
            it.number, it.kind, it.amount, it.currency
        )
    };
    invoices.iter().map(row).collect()
}

#[test]
fn the_total_is_the_best_one_of_the_summary() {
    for (rest, expected) in [
        ("UNS+S'MOA+77:119.00'", "119.00 EUR"),
        ("UNS+S'MOA+9:1'MOA+86:2'MOA+77:3'", "3 EUR"),
        ("UNS+S'MOA+86:2'MOA+79:4'MOA+9:1'", "1 EUR"),
        ("UNS+S'CNT+2:1'MOA+79:4'MOA+86:2'", "2 EUR"),
        // Its own currency comes before that of CUX.
        ("UNS+S'MOA+77:119.00:USD:4'", "119.00 USD"),
        // In the payment currency once more.
        (
            "UNS+S'MOA+77:119.00:EUR:4'MOA+77:128.5:USD:11'",
            "119.00 EUR",
        ),
        // Amounts of lines, tax rates and allowances are no totals.
        ("LIN+1'MOA+77:5'UNS+S'MOA+77:10'", "10 EUR"),
        ("UNS+S'MOA+86:20'TAX+7+VAT'MOA+77:5'", "20 EUR"),
        ("UNS+S'MOA+86:20'ALC+A'MOA+9:5'", "20 EUR"),
        ("PAT+1'MOA+9:5'UNS+S'MOA+9:10'", "10 EUR"),
        ("UNS+S'MOA+77:-119,5'", "-119.5 EUR"),
    ] {
        let expected = format!("R-1 380 2026-01-05 {expected}");
        assert_eq!(read(&with(rest)), [expected], "{rest}");
    }
}

#[test]
fn header_values_are_those_of_the_document_itself() {
    const TOTAL: &str = "UNS+S'MOA+77:1'";
    for (header, expected) in [
        ("BGM+380+R-1+9'CUX+2:EUR:4'", "R-1 380  1 EUR"),
        ("BGM++R-1'CUX+2:EUR:4'", "R-1   1 EUR"),
        ("BGM+381:::x+R?+1?'2:1'CUX+2:EUR:4'", "R+1'2 381  1 EUR"),
        ("BGM+380+R-1'CUX+3:USD:11+2:EUR:4'", "R-1 380  1 EUR"),
        ("BGM+380+R-1'CUX+2:EUR:4+3:USD:11+0.9'", "R-1 380  1 EUR"),
        // The date of an order that is referred to.
        (
            "BGM+380+R-1'DTM+35:20260101:102'RFF+ON:7'DTM+137:20250101:102'CUX+2:EUR'",
            "R-1 380  1 EUR",
        ),
    ] {
        let body = one(&format!("{header}{TOTAL}"));
        assert_eq!(read(&body), [expected], "{header}");
    }
}

#[test]
fn the_decimal_mark_is_that_of_una_except_in_version_4() {
    let total = |una: &str, version: &str, amount: &str| {
        let body = with(&format!("UNS+S'MOA+77:{amount}'"));
        invoices(&format!("{una}{}", body.replace("UNOC:3", version))).is_ok()
    };
    for (una, version, amount, accepted) in [
        ("", "UNOC:3", "1,5", true),
        ("", "UNOC:3", "1.5", true),
        ("UNA:+.? '", "UNOC:3", "1.5", true),
        ("UNA:+.? '", "UNOC:3", "1,5", false),
        ("UNA:+,? '", "UNOC:3", "1,5", true),
        ("UNA:+,? '", "UNOA:1", "1.5", false),
        ("UNA:+.?*'", "UNOY:4::7", "1,5", true),
        ("UNA:+.?*'", "UNOY:4::7", "1.5", true),
    ] {
        assert_eq!(
            total(una, version, amount),
            accepted,
            "{una} {version} {amount}"
        );
    }
}

#[test]
fn every_invoice_of_an_interchange_is_read_and_other_messages_are_passed_over() {
    let invoic = |n: u32| {
        format!("UNH+{n}+INVOIC:D:96A:UN'BGM+380+R-{n}+9'CUX+2:EUR'UNS+S'MOA+77:{n}.00'UNT+6+{n}'")
    };
    let orders = "UNH+9+ORDERS:D:96A:UN'BGM+220+B-9'MOA+77:9'UNT+4+9'";
    let (first, second) = (invoic(1), invoic(2));
    let expected = ["R-1 380  1.00 EUR", "R-2 380  2.00 EUR"];
    for body in [
        format!("{UNB}{first}{orders}{second}UNZ+3+417'"),
        format!("{UNB}UNG+INVOIC+A+B'{first}{second}UNE+2+1'UNZ+1+417'"),
        format!("{UNB}{first}{second}UNZ+2+417"),
    ] {
        assert_eq!(read(&body), expected, "{body}");
    }
}

fn refusal(body: &str) -> String {
    invoices(body).unwrap_err().to_string()
}

#[test]
fn a_malformed_invoice_is_refused_by_message_and_segment() {
    for (content, expected) in [
        ("", "BGM: it is missing"),
        (
            "BGM+380'UNS+S'MOA+77:1:EUR'",
            "BGM: the document number (1004) is missing",
        ),
        ("BGM+380+  '", "BGM: the document number (1004) is missing"),
        (
            "BGM+380+R'DTM+137:SECRET:102'",
            "DTM: the date (137) cannot be read",
        ),
        (
            "BGM+380+R'CUX+2:SECRET:4'",
            "CUX: the currency (6345) is not a code",
        ),
        (
            "BGM+380+R'MOA+77:1:EUR'",
            "UNS: it is missing, and with it the summary",
        ),
        (
            "BGM+380+R'UNS+S'MOA+79:1:EUR'",
            "MOA: the summary has no total (5025 is 77, 9 or 86)",
        ),
        (
            "BGM+380+R'UNS+S'TAX+7'MOA+77:1:EUR'",
            "MOA: the summary has no total (5025 is 77, 9 or 86)",
        ),
        (
            "BGM+380+R'UNS+S'MOA+77:SECRET:EUR'",
            "MOA: the total (5004) is not an amount",
        ),
        (
            "BGM+380+R'UNS+S'MOA+77::EUR'",
            "MOA: the total (5004) is not an amount",
        ),
        (
            "BGM+380+R'UNS+S'MOA+77:1:SECRET'",
            "MOA: the currency (6345) is not a code",
        ),
        (
            "BGM+380+R'UNS+S'MOA+77:1'",
            "MOA: the total has no currency, and no CUX gives one",
        ),
        (
            "BGM+380+R'CUX+3:USD'UNS+S'MOA+77:1'",
            "MOA: the total has no currency, and no CUX gives one",
        ),
    ] {
        assert_eq!(
            refusal(&one(content)),
            format!("message M1: {expected}"),
            "{content}"
        );
    }
}

#[test]
fn an_interchange_that_is_not_whole_is_refused() {
    let whole = with("UNS+S'MOA+77:1'");
    let other_reference = whole.replace("+M1'UNZ", "+M2'UNZ");
    for (body, expected) in [
        (
            whole.replace("UNZ+1+417'", ""),
            "the interchange is not whole: UNZ: it is missing",
        ),
        (
            whole.replace("UNZ+1", "UNZ+2"),
            "the interchange is not whole: UNZ: it counts other messages or groups than there are",
        ),
        (
            whole.replace("UNZ+1+417", "UNZ"),
            "the interchange is not whole: UNZ: it counts other messages or groups than there are",
        ),
        (
            whole.replace("UNH", "ZZZ"),
            "the interchange is not whole: UNT: it ends no message",
        ),
        (
            whole.replace("UNT+7+M1'", ""),
            "message M1: UNT: it is missing",
        ),
        (
            whole.replace("UNT+7+M1'UNZ+1", "UNH+M2+INVOIC'UNT+2+M2'UNZ+2"),
            "message M1: UNT: it is missing",
        ),
        (
            whole.replace("CUX+2:EUR:4'", ""),
            "message M1: UNT: it counts other segments than there are",
        ),
        (
            other_reference,
            "message M1: UNT: it has another reference than UNH",
        ),
    ] {
        assert_ne!(body, whole, "{expected}");
        assert_eq!(refusal(&body), expected, "{body}");
    }
}

#[test]
fn an_interchange_without_an_invoice_is_refused_by_what_it_holds() {
    let holding = |kinds: &[&str]| {
        let messages = kinds.iter().map(|kind| format!("UNH+1+{kind}'UNT+2+1'"));
        let messages: String = messages.collect();
        refusal(&format!("{UNB}{messages}UNZ+{}+417'", kinds.len()))
    };
    for (kinds, expected) in [
        (&[] as &[&str], "no message"),
        (&["ORDERS:D:96A:UN"], "ORDERS"),
        (&["ORDERS", "DESADV", "ORDERS"], "DESADV, ORDERS"),
        (&["invoic"], "invoic"),
        (&[""], "(without a name)"),
        (
            &["A", "B", "C", "D", "E", "F", "G"],
            "A, B, C, D, E and 2 more",
        ),
        (&["a name that is far too long\u{7}"], "a name that is"),
        (&["\u{1b}[31m"], "\\u{1b}[31m"),
    ] {
        let expected = format!("the interchange holds {expected} and no INVOIC");
        assert_eq!(holding(kinds), expected);
    }
}
