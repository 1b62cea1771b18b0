//! Chat models: wires, profiles, retry, budget, cassette.
