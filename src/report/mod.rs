//! One report value and its renderers.
