//! Connecting to real servers: with certificates of a private authority, through proxies that refuse what
//! clients send first, with passwords that change, and to addresses where nobody answers.

#![allow(clippy::expect_used, clippy::unwrap_used)] // In helpers too, which Clippy does not take for tests.

#[cfg(feature = "secrets-manager")]
mod emulator;
#[cfg(any(feature = "iam", feature = "secrets-manager"))]
mod process;
mod refusals;
#[cfg(feature = "secrets-manager")]
mod rotation;
mod support;
mod tls;
#[cfg(feature = "iam")]
mod token;
