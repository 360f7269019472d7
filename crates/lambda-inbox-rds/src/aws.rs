//! The credentials of a function's role, and nothing of the many other places where the SDK's own chain looks
//! (profiles, STS, instance metadata): those cost a megabyte, and a second's wait where there are none.

use aws_config::ecs::EcsCredentialsProvider;
use aws_config::environment::EnvironmentVariableCredentialsProvider;
use aws_config::meta::credentials::CredentialsProviderChain;
use aws_config::provider_config::ProviderConfig;
use aws_credential_types::provider::SharedCredentialsProvider;
use std::time::Duration;

/// For the TCP connection. The endpoint is in the same region.
pub(crate) const CONNECT: Duration = Duration::from_secs(1);
/// For an operation, its second try and the pause between them included: less than connecting to the database
/// may take, so that the error is ours.
pub(crate) const OPERATION: Duration = Duration::from_secs(4);

/// From the variables that Lambda sets, else from the local endpoint that it offers with SnapStart, as ECS does.
///
/// <https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html>
pub(crate) fn credentials() -> SharedCredentialsProvider {
    // The endpoint is on this machine and speaks no TLS.
    let http_client = aws_smithy_http_client::Builder::new().build_http();
    let config = ProviderConfig::without_region().with_http_client(http_client);
    let container = EcsCredentialsProvider::builder()
        .configure(&config)
        .connect_timeout(CONNECT)
        .read_timeout(CONNECT)
        .build();
    let environment = EnvironmentVariableCredentialsProvider::new();
    let chain = CredentialsProviderChain::first_try("environment", environment);
    SharedCredentialsProvider::new(chain.or_else("container", container))
}
