//! How much of a process is in memory.

/// Resident bytes: `VmRSS` of the process's status. None on systems that have no such file.
pub(super) fn resident(pid: u32) -> Option<f64> {
    parse(&std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?)
}

fn parse(status: &str) -> Option<f64> {
    let kibibytes = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:")?.strip_suffix("kB"))?;
    Some(kibibytes.trim().parse::<f64>().ok()? * 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_memory_is_read_from_its_own_line() {
        let status = "Name:\tbootstrap\nVmHWM:\t    9000 kB\nVmRSS:\t    5120 kB\nThreads:\t3\n";
        assert_eq!(parse(status), Some(5_242_880.0));
        assert_eq!(parse("Name:\tbootstrap\n"), None);
    }
}
