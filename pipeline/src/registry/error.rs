//! Errors of a schema registry.

use warptape_eventlog::LogError;

/// A failure of a registry. Messages name the registry's address but never a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{url}: {found}; {}", problem.action())]
pub struct RegistryError {
    /// Address of the registry.
    pub url: String,
    /// Kind of the failure.
    pub problem: RegistryProblem,
    /// Details of the failure.
    pub found: String,
}

/// Kinds of failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegistryProblem {
    /// The registry cannot be reached, or cannot answer now. Only this failure may disappear after a retry.
    Unreachable,
    /// The registry requires other credentials.
    Refused,
    /// A subject contains schemas that are incompatible with ours.
    Incompatible,
    /// The answer does not come from a schema registry.
    Unexpected,
}

impl RegistryProblem {
    /// Returns the advice for the user.
    pub fn action(self) -> &'static str {
        match self {
            Self::Unreachable => {
                "check schema_registry.url, start the registry, and start this process again: nothing that \
                 was committed is lost"
            }
            Self::Refused => {
                "set schema_registry.username, and WARPTAPE__SCHEMA_REGISTRY__PASSWORD or \
                 WARPTAPE__SCHEMA_REGISTRY__PASSWORD_FILE, to a user with this right"
            }
            Self::Incompatible => {
                "set topics.prefix to use other topic names, or remove the other schemas of the subject"
            }
            Self::Unexpected => "check that schema_registry.url is the address of a schema registry",
        }
    }
}

impl From<RegistryError> for LogError {
    fn from(RegistryError { url, problem, found }: RegistryError) -> Self {
        LogError::Schemas { url, found, action: problem.action().to_owned() }
    }
}
