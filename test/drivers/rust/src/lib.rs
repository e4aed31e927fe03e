// SPDX-License-Identifier: ISC
//! What the programs in Rust share: clients that work at once, and a report in TAP.

use std::fmt::Debug;
use std::future::Future;
use std::sync::Mutex;

pub const CLIENTS: usize = 6;

static RESULTS: Mutex<Vec<bool>> = Mutex::new(Vec::new());

/// Whether a client keeps its server for as long as it is connected.
pub fn has_session() -> bool {
    variable("DRIVER_MODE") != "transaction"
}

/// Whether the database is the console.
pub fn is_console() -> bool {
    variable("DRIVER_MODE") == "console"
}

pub fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

pub type Outcome = Result<(), String>;

/// Any error as text, with all its details.
pub fn words<E: Debug>(error: E) -> String {
    format!("{error:?}")
}

pub fn same<T: PartialEq + Debug>(seen: T, wanted: T) -> Outcome {
    if seen == wanted {
        return Ok(());
    }
    Err(format!("{seen:?} instead of {wanted:?}"))
}

/// Run the body for every client at once; all have to succeed.
pub async fn check<F, R>(name: &str, body: F)
where
    F: Fn(usize) -> R,
    R: Future<Output = Outcome> + Send + 'static,
{
    check_for(CLIENTS, name, body).await
}

/// The same for so many clients.
pub async fn check_for<F, R>(clients: usize, name: &str, body: F)
where
    F: Fn(usize) -> R,
    R: Future<Output = Outcome> + Send + 'static,
{
    let tasks: Vec<_> = (0..clients).map(|number| tokio::spawn(body(number))).collect();
    let mut failures = Vec::new();
    for task in tasks {
        if let Err(failure) = task.await.unwrap_or_else(|panic| Err(words(panic))) {
            failures.push(failure);
        }
    }
    let count = {
        let mut results = RESULTS.lock().unwrap();
        results.push(failures.is_empty());
        results.len()
    };
    let verdict = if failures.is_empty() { "ok" } else { "not ok" };
    println!("{verdict} {count} - {name}");
    for failure in failures {
        println!("# {}", failure.replace('\n', "\n# "));
    }
}

/// Print the number of checks, and exit with 0 if all were right.
pub fn finish() -> ! {
    let results = RESULTS.lock().unwrap();
    println!("1..{}", results.len());
    let good = !results.is_empty() && results.iter().all(|result| *result);
    std::process::exit(if good { 0 } else { 1 })
}
