//! What the machine says about this process. Linux only; elsewhere the figures are 0.

/// Processor time so far, of all threads, in seconds.
pub(crate) fn processor_seconds() -> f64 {
    // Fields 14 and 15 are user and system time in ticks of 1/100 s; the name in field 2 may hold spaces.
    const TICKS_PER_SECOND: f64 = 100.0;
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let Some((_, rest)) = text.rsplit_once(") ") else { return 0.0 };
    let ticks: f64 = rest.split(' ').skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum();
    ticks / TICKS_PER_SECOND
}

/// The most memory this process has had, in KiB.
pub(crate) fn peak_kib() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    text.lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}
