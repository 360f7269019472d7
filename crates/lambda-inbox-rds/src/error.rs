//! What keeps a function from its database, said so that the reader knows what to do about it.

use std::error::Error;

/// Why there is no connection. It is the cause of a [`SourceError`](lambda_inbox_store::SourceError) and of
/// the store's errors; no text has a password or a token.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The database said nothing in time.
    #[error(
        "{address} did not answer in time; check that the function's subnets and security group reach the \
         database, and that it is running (a paused Aurora Serverless database takes 15 seconds and more)"
    )]
    NoAnswer {
        /// Host and port.
        address: String,
    },
    /// There is no way to the database.
    #[error(
        "{address} cannot be reached; check the host's name and port, and that the function's subnets and \
         security group reach the database"
    )]
    Unreachable {
        /// Host and port.
        address: String,
        /// The driver's error.
        source: sqlx::Error,
    },
    /// The certificate is signed by nobody we know.
    #[error(
        "the certificate of {host} is signed by an unknown authority; for RDS, download AWS's CA bundle \
         (global-bundle.pem), ship it with the function and name it in LAMBDA_INBOX_DB_CA, or build with the \
         feature rds-ca-bundle"
    )]
    UnknownIssuer {
        /// The server.
        host: String,
        /// The driver's error.
        source: sqlx::Error,
    },
    /// The certificate is another server's.
    #[error(
        "the certificate of {host} is for another name; connect by the name that RDS gives the database, \
         not by an alias or an address"
    )]
    OtherName {
        /// The server.
        host: String,
        /// The driver's error.
        source: sqlx::Error,
    },
    /// The certificate cannot be used for another reason.
    #[error("the certificate of {host} is not accepted")]
    Certificate {
        /// The server.
        host: String,
        /// The driver's error.
        source: sqlx::Error,
    },
    /// There is no encryption to be had.
    #[error(
        "no TLS with {host}; turn it on at the server, or ask for less than verify-full in LAMBDA_INBOX_DB_TLS \
         or sslmode, if the way to it can be trusted"
    )]
    NoTls {
        /// The server.
        host: String,
        /// The driver's error.
        source: sqlx::Error,
    },
    /// A proxy does not like what clients send first.
    #[error(
        "the server refuses options at start-up, as RDS Proxy and PgBouncer do; set \
         LAMBDA_INBOX_DB_POOLED=on, and no options in DATABASE_URL or PGOPTIONS"
    )]
    StartUpRefused {
        /// The server's answer.
        source: sqlx::Error,
    },
    /// AWS Secrets Manager cannot be reached.
    #[error(
        "Secrets Manager at {endpoint} did not answer; a function in a private subnet needs a VPC endpoint for \
         secretsmanager (or a NAT gateway), and security groups that let both talk on port 443"
    )]
    SecretsManagerUnreachable {
        /// Where it should be.
        endpoint: String,
        /// What the client said.
        source: Box<dyn Error + Send + Sync>,
    },
    /// AWS Secrets Manager has an answer, but not the secret.
    #[error(
        "Secrets Manager does not give out the secret {arn}; grant the function's role \
         secretsmanager:GetSecretValue on it and kms:Decrypt on its key, and check that it exists"
    )]
    SecretRefused {
        /// The secret.
        arn: String,
        /// What it said.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The secret does not say what it should.
    #[error(
        "the secret {arn} is no JSON object with a password, as in \
         {{\"username\":\"app\",\"password\":\"...\"}}"
    )]
    SecretMalformed {
        /// The secret.
        arn: String,
    },
    /// Neither the environment nor the secret says it.
    #[error("neither {variable} nor the secret {arn} says it; set the variable")]
    SecretIncomplete {
        /// What is missing.
        variable: &'static str,
        /// The secret.
        arn: String,
    },
    /// The password would be tried for somebody else.
    #[error(
        "LAMBDA_INBOX_DB_USER is {expected:?}, but the secret {arn} is for {found:?}; unset the variable, or \
         name the other secret"
    )]
    SecretOfAnotherUser {
        /// The variable's.
        expected: String,
        /// The secret's.
        found: String,
        /// The secret.
        arn: String,
    },
    /// There is nothing to sign requests with.
    #[error("no AWS credentials; check the function's role, or AWS_ACCESS_KEY_ID and its like")]
    NoCredentials {
        /// What the providers said.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The token could not be made.
    #[error("the IAM token could not be signed; check LAMBDA_INBOX_DB_HOST, _USER and _REGION")]
    Signing {
        /// What the signer said.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The database takes no tokens from this user.
    #[error(
        "{user} may not log in with an IAM token; run GRANT rds_iam TO {user}, enable IAM authentication on the \
         instance, and allow the function's role rds-db:connect for this user"
    )]
    TokenRefused {
        /// The database's user.
        user: String,
        /// The server's answer.
        source: sqlx::Error,
    },
}
