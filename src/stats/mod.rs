//! Pure mathematics of the gate.
