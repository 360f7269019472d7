//! Asking SQS how long queues keep their messages, with the patience of a function: the SDK's own is longer
//! than it may run.

use crate::guard::Lifetime;
use crate::lifetimes::{Attributes, dead_letters_count, lifetime};
use crate::queues::{Address, Arn, DeadLetters, Queue, QueueError};
use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::Builder;
use aws_sdk_sqs::error::SdkError;
use aws_sdk_sqs::types::QueueAttributeName;
use aws_smithy_http_client::tls::Provider;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use std::error::Error;
use std::time::Duration;

/// For the TCP connection. The endpoint is in the same region.
const CONNECT: Duration = Duration::from_secs(2);
/// For all tries of one question.
const OPERATION: Duration = Duration::from_secs(5);
const TRIES: u32 = 2;

/// How long messages of each queue can come back.
pub(crate) async fn lifetimes(
    queues: &[Queue],
    dead_letters: DeadLetters,
) -> Result<Vec<Lifetime>, QueueError> {
    let sqs = Sqs {
        config: config().await,
    };
    let mut lifetimes = Vec::with_capacity(queues.len());
    for queue in queues {
        let attributes = sqs.attributes(&queue.address).await?;
        let dead = match &attributes.dead_letter_queue {
            Some(arn) if dead_letters_count(&queue.address, dead_letters) => {
                Some(sqs.attributes(&Address::Arn(arn.clone())).await?)
            }
            _ => None,
        };
        lifetimes.push(lifetime(queue, &attributes, dead.as_ref()));
    }
    Ok(lifetimes)
}

async fn config() -> SdkConfig {
    // The cryptography that the database connection uses already.
    let http_client = aws_smithy_http_client::Builder::new()
        .tls_provider(Provider::Rustls(CryptoMode::Ring))
        .build_https();
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(CONNECT)
        .operation_timeout(OPERATION)
        .build();
    aws_config::defaults(BehaviorVersion::latest())
        .http_client(http_client)
        .timeout_config(timeouts)
        .retry_config(RetryConfig::standard().with_max_attempts(TRIES))
        .load()
        .await
}

struct Sqs {
    config: SdkConfig,
}

impl Sqs {
    async fn attributes(&self, address: &Address) -> Result<Attributes, QueueError> {
        let client = self.client(address);
        let url = match address {
            Address::Url(url) => url.clone(),
            Address::Arn(arn) => self.url(&client, arn).await?,
        };
        let answer = client
            .get_queue_attributes()
            .queue_url(url)
            .attribute_names(QueueAttributeName::MessageRetentionPeriod)
            .attribute_names(QueueAttributeName::RedrivePolicy)
            .send()
            .await
            .map_err(|error| self.failed(address, error))?;
        let attributes = answer.attributes.unwrap_or_default();
        let named = attributes
            .into_iter()
            .map(|(name, value)| (name.as_str().to_owned(), value));
        Ok(Attributes::new(&named.collect()))
    }

    async fn url(&self, client: &Client, arn: &Arn) -> Result<String, QueueError> {
        let answer = client
            .get_queue_url()
            .queue_name(&arn.name)
            .queue_owner_aws_account_id(&arn.account)
            .send()
            .await
            .map_err(|error| self.failed(&Address::Arn(arn.clone()), error))?;
        Ok(answer.queue_url.unwrap_or_default())
    }

    /// A queue may be in another region than the function.
    fn client(&self, address: &Address) -> Client {
        let config = Builder::from(&self.config);
        Client::from_conf(match address {
            Address::Url(_) => config.build(),
            Address::Arn(arn) => config.region(Region::new(arn.region.clone())).build(),
        })
    }

    fn failed<E>(&self, address: &Address, error: SdkError<E>) -> QueueError
    where
        E: Error + Send + Sync + 'static,
    {
        let queue = address.name().to_owned();
        let is_silence = matches!(
            error,
            SdkError::TimeoutError(_) | SdkError::DispatchFailure(_)
        );
        let source = Box::new(error);
        if is_silence {
            let endpoint = self.endpoint(address);
            QueueError::Unreachable {
                queue,
                endpoint,
                source,
            }
        } else {
            QueueError::Refused { queue, source }
        }
    }

    /// For people.
    fn endpoint(&self, address: &Address) -> String {
        if let Some(endpoint) = self.config.endpoint_url() {
            return endpoint.to_owned();
        }
        if let Ok(endpoint) = std::env::var("AWS_ENDPOINT_URL_SQS") {
            return endpoint;
        }
        match address {
            Address::Url(url) => url
                .rsplit_once("//")
                .map_or(url.as_str(), |(_, rest)| rest)
                .split('/')
                .next()
                .unwrap_or_default()
                .to_owned(),
            Address::Arn(arn) => format!("sqs.{}.amazonaws.com", arn.region),
        }
    }
}
