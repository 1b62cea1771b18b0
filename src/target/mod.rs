//! Evaluation bundles: manifest, personas, flow rubric, prompts.
