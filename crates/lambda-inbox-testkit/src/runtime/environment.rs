//! What a process finds around it in Lambda, and nothing of this machine beyond the basics: a function that works
//! only because of a developer's shell should fail here, not in production.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;

/// What a program needs to run at all on Linux or macOS; passed on from this process.
const BASICS: [&str; 5] = ["PATH", "HOME", "TMPDIR", "LANG", "USER"];

const REGION: &str = "eu-central-1";
const ACCOUNT: &str = "111122223333";
const MEMORY_MB: &str = "128";
const VERSION: &str = "$LATEST";

/// The ARN under which the function is invoked.
pub(super) fn function_arn(function_name: &str) -> String {
    format!("arn:aws:lambda:{REGION}:{ACCOUNT}:function:{function_name}")
}

/// The basics, then the reserved variables of the docs page `configuration-envvars`, without credentials.
pub(super) fn variables(
    function_name: &str,
    api: SocketAddr,
    task_root: &Path,
) -> Vec<(OsString, OsString)> {
    let basics = BASICS
        .iter()
        .filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)));
    let log_group = format!("/aws/lambda/{function_name}");
    let api = api.to_string();
    let reserved = [
        ("_HANDLER", "bootstrap"),
        ("AWS_DEFAULT_REGION", REGION),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", MEMORY_MB),
        ("AWS_LAMBDA_FUNCTION_NAME", function_name),
        ("AWS_LAMBDA_FUNCTION_VERSION", VERSION),
        ("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand"),
        ("AWS_LAMBDA_LOG_FORMAT", "JSON"),
        ("AWS_LAMBDA_LOG_GROUP_NAME", &log_group),
        ("AWS_LAMBDA_LOG_LEVEL", "INFO"),
        ("AWS_LAMBDA_LOG_STREAM_NAME", "local/[$LATEST]"),
        ("AWS_LAMBDA_RUNTIME_API", &api),
        ("AWS_REGION", REGION),
        ("TZ", ":UTC"),
    ]
    .map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let task_root = (OsString::from("LAMBDA_TASK_ROOT"), task_root.into());
    basics.chain(reserved).chain([task_root]).collect()
}
