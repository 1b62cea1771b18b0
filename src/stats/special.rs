//! Quantiles and tails.
//!
//! `statrs` supplies the error function with its inverse and the log-gamma function. The incomplete beta function and
//! its quantile are written here, because `statrs` 0.19
//! * misses the wanted 1e-10 on the quantile from about a thousand conversations on (relative error 1e-9 for
//!   Beta(7, 994) at 0.05, 1e-6 for Beta(2.5, 45676.5));
//! * does not return from `inv_beta_reg(2, 1e7, 0.95)`, and a gate must not hang on the size search of `power`;
//! * stops its continued fraction after 140 terms without an error;
//! * has no logarithmic form, and the e-values of `sequential` leave the range of `f64`.

use statrs::function::{erf, gamma};
use std::f64::consts::SQRT_2;

/// `z` with `P(Z <= z) = probability` for the standard normal.
pub(super) fn normal_quantile(probability: f64) -> f64 {
    -SQRT_2 * erf::erfc_inv(2.0 * probability)
}

/// `P(X >= x)` for chi-squared with one degree of freedom.
///
/// By the incomplete gamma function: `erfc` of `statrs` has a relative error of 1e-10 here.
pub(super) fn chi_squared_1_sf(x: f64) -> f64 {
    if x > 0.0 { gamma::gamma_ur(0.5, x / 2.0) } else { 1.0 }
}

/// `t` with `P(T > t) = tail` for Student's t, `0 < tail < 1/2`, `degrees_of_freedom > 0`.
///
/// `T^2 / (T^2 + df)` is Beta(1/2, df/2), NIST DLMF 8.17 with 5.12; this side of the beta distribution keeps the
/// digits when df is large.
pub(super) fn student_t_quantile(tail: f64, degrees_of_freedom: f64) -> f64 {
    let y = beta_quantile(2.0f64.mul_add(-tail, 1.0), 0.5, degrees_of_freedom / 2.0);
    (degrees_of_freedom * y / (1.0 - y)).sqrt()
}

/// Natural logarithm of the unnormalised incomplete beta function, the integral of `t^(a-1) (1-t)^(b-1)` over `[0, x]`,
/// for `0 < x < 1`.
pub(super) fn ln_incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    // Left of the mean the continued fraction converges fast, right of it that of the complement does.
    if x < (a + 1.0) / (a + b + 2.0) {
        ln_lower_part(a, b, x)
    } else {
        let whole = ln_beta(a, b);
        whole + (-(ln_lower_part(b, a, 1.0 - x) - whole).exp().min(1.0)).ln_1p()
    }
}

/// The same for `x` left of about the mean, by the continued fraction NIST DLMF 8.17.22, evaluated with the modified
/// Lentz method (Thompson and Barnett 1986). It takes some multiple of the square root of `max(a, b)` terms.
fn ln_lower_part(a: f64, b: f64, x: f64) -> f64 {
    const MOST_TERMS: u32 = 1_000_000;
    let apart = |value: f64| if value.abs() < f64::MIN_POSITIVE { f64::MIN_POSITIVE } else { value };
    let mut c = 1.0f64;
    let mut d = 1.0 / apart(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for term in 1..MOST_TERMS {
        let m = f64::from(term);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / apart(even.mul_add(d, 1.0));
        c = apart(1.0 + even / c);
        fraction *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / apart(odd.mul_add(d, 1.0));
        c = apart(1.0 + odd / c);
        let change = d * c;
        fraction *= change;
        if (change - 1.0).abs() <= f64::EPSILON {
            break;
        }
    }
    a.mul_add(x.ln(), b * (-x).ln_1p()) - a.ln() + fraction.ln()
}

/// Natural logarithm of the complete beta function.
pub(super) fn ln_beta(a: f64, b: f64) -> f64 {
    gamma::ln_gamma(a) + gamma::ln_gamma(b) - gamma::ln_gamma(a + b)
}

/// Both tails `(P(X <= x), P(X > x))` of Beta(a, b), the smaller one with full relative precision.
pub(super) fn beta_tails(x: f64, a: f64, b: f64) -> (f64, f64) {
    if x <= 0.0 {
        return (0.0, 1.0);
    }
    if x >= 1.0 {
        return (1.0, 0.0);
    }
    let whole = ln_beta(a, b);
    if x < (a + 1.0) / (a + b + 2.0) {
        let lower = (ln_lower_part(a, b, x) - whole).exp().min(1.0);
        (lower, 1.0 - lower)
    } else {
        let upper = (ln_lower_part(b, a, 1.0 - x) - whole).exp().min(1.0);
        (1.0 - upper, upper)
    }
}

/// `x` with `P(X <= x) = probability` for Beta(a, b), `a, b > 0`, `0 < probability < 1`.
///
/// Newton steps inside a bracket that bisection keeps shrinking, so it ends for every input.
pub(super) fn beta_quantile(probability: f64, a: f64, b: f64) -> f64 {
    const MAX_STEPS: usize = 400;
    let (mut low, mut high) = (0.0f64, 1.0f64);
    let ln_whole = ln_beta(a, b);
    let upper_probability = 1.0 - probability;
    let mut x = (a / (a + b)).clamp(f64::MIN_POSITIVE, 1.0 - f64::EPSILON);
    for _ in 0..MAX_STEPS {
        let (lower, upper) = beta_tails(x, a, b);
        let excess = if probability <= 0.5 { lower - probability } else { upper_probability - upper };
        if excess == 0.0 {
            return x;
        }
        if excess > 0.0 {
            high = x;
        } else {
            low = x;
        }
        let ln_density = (a - 1.0).mul_add(x.ln(), (b - 1.0) * (-x).ln_1p()) - ln_whole;
        let newton = x - excess * (-ln_density).exp();
        let next = if newton > low && newton < high { newton } else { middle(low, high) };
        if (next - x).abs() <= 2.0 * f64::EPSILON * x || next <= low || next >= high {
            return next;
        }
        x = next;
    }
    x
}

/// Next trial point of the bisection: geometric once the bracket spans orders of magnitude, because quantiles of a
/// zero count go down to 1e-9 and below.
fn middle(low: f64, high: f64) -> f64 {
    if high > 4.0 * low && high < 0.5 {
        if low > 0.0 { (low * high).sqrt() } else { high / 16.0 }
    } else {
        f64::midpoint(low, high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(actual: f64, expected: f64, relative: f64) {
        assert!(
            (actual - expected).abs() <= relative * expected.abs(),
            "{actual} is not {expected} within {relative}"
        );
    }

    #[test]
    fn normal_quantiles_of_the_tables() {
        close(normal_quantile(0.975), 1.959_963_984_540_054, 1e-12);
        close(normal_quantile(0.95), 1.644_853_626_951_472_7, 1e-12);
        close(normal_quantile(0.995), 2.575_829_303_548_900_4, 1e-12);
        close(chi_squared_1_sf(3.841_458_820_694_124), 0.05, 1e-12);
    }

    #[test]
    fn student_quantiles_of_the_tables() {
        // df 1 is the Cauchy distribution: tan(pi * 0.475). df 2 has t = (2p - 1) sqrt(2 / (1 - (2p - 1)^2)).
        close(student_t_quantile(0.025, 1.0), 12.706_204_736_432_095, 1e-10);
        close(student_t_quantile(0.025, 2.0), 0.95 * (2.0 / (1.0 - 0.95f64 * 0.95)).sqrt(), 1e-10);
        close(student_t_quantile(0.05, 9.0), 1.833_112_932_653_634, 1e-9);
        close(student_t_quantile(0.025, 99.0), 1.984_216_951_586_391, 1e-9);
        close(student_t_quantile(0.05, 1e6), 1.644_853_626_951_472_7, 1e-5);
    }

    #[test]
    fn beta_quantiles_with_closed_forms() {
        // Beta(1, n): 1 - (1 - p)^(1/n). Beta(a, 1): p^(1/a). Both for sizes far beyond any sweep.
        // Log-gamma loses digits with the size of its result, hence the tolerance beyond 1e4.
        for (n, tolerance) in
            [(1.0, 1e-12), (2.0, 1e-12), (10.0, 1e-12), (299.0, 1e-11), (1e4, 1e-10), (1e6, 1e-8)]
        {
            close(beta_quantile(0.95, 1.0, n), -(0.05f64.ln() / n).exp_m1(), tolerance);
            close(beta_quantile(0.05, n, 1.0), 0.05f64.powf(1.0 / n), tolerance);
            close(beta_quantile(0.05, 1.0, n), -(0.95f64.ln() / n).exp_m1(), tolerance);
        }
    }

    #[test]
    fn beta_quantiles_invert_the_tails() {
        for a in [0.5, 1.0, 3.7, 24.0, 5000.0, 2e5] {
            for b in [0.5, 1.0, 2.2, 140.0, 9000.0] {
                for probability in [1e-6, 0.005, 0.05, 0.5, 0.95, 0.999] {
                    let x = beta_quantile(probability, a, b);
                    let (lower, upper) = beta_tails(x, a, b);
                    assert!(x > 0.0 && x <= 1.0);
                    // Where the quantile sits one rounding below 1 the tail itself cannot be resolved.
                    if x < 1.0 - 1e-9 {
                        assert!(
                            (lower - probability).abs() < 1e-8,
                            "Beta({a}, {b}) at {probability}: {x} {lower}"
                        );
                        assert!((lower + upper - 1.0).abs() < 1e-12);
                    }
                }
            }
        }
    }
}
