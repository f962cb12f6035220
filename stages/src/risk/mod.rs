//! Risk: what is computed on request, composed from kernels.

pub mod optimisation;
