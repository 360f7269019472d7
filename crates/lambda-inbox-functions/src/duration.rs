//! One notation for every duration: a number and a unit, `14d`, `36h`, `90m`, and sums of them, `14d 12h`.

use std::time::Duration;

/// Reads a duration such as `14d`.
pub(crate) fn parse(text: &str) -> Option<Duration> {
    humantime::parse_duration(text.trim()).ok()
}

/// Writes it in the same notation, to the second and without units of unequal length.
pub(crate) fn show(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let parts = [
        (seconds / 86_400, "d"),
        (seconds % 86_400 / 3_600, "h"),
        (seconds % 3_600 / 60, "m"),
        (seconds % 60, "s"),
    ];
    let shown: Vec<String> = parts
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, unit)| format!("{number}{unit}"))
        .collect();
    if shown.is_empty() {
        "0s".to_owned()
    } else {
        shown.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_can_be_read() {
        for (text, seconds) in [
            ("14d", 14 * 86_400),
            ("36h", 36 * 3_600),
            ("14d 12h", 14 * 86_400 + 12 * 3_600),
            ("400d 1s", 400 * 86_400 + 1),
            ("0s", 0),
        ] {
            let duration = parse(text).unwrap();
            assert_eq!(duration.as_secs(), seconds, "{text}");
            assert_eq!(parse(&show(duration)), Some(duration), "{text}");
        }
        assert_eq!(show(Duration::from_secs(14 * 86_400)), "14d");
    }

    #[test]
    fn a_number_without_a_unit_is_no_duration() {
        for text in ["", "14", "d", "14 dogs", "-1d", "P14D"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
