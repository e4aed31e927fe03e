// SPDX-License-Identifier: ISC
//! tokio-postgres with its defaults: statements s0, s1, ... by name, queries in pipelines.

use std::io::Cursor;
use std::sync::Arc;
use std::time::Duration;

use drivers::{check, check_for, finish, has_session, is_console, same, variable, words, Outcome, CLIENTS};
use futures_util::{future, pin_mut, SinkExt, StreamExt, TryStreamExt};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Config, IsolationLevel, NoTls};

fn config() -> Config {
    let mut config = Config::new();
    config
        .host(variable("PGHOST"))
        .port(variable("PGPORT").parse().unwrap())
        .user(variable("PGUSER"))
        .password(variable("PGPASSWORD"))
        .dbname(variable("PGDATABASE"));
    config
}

async fn connected(config: &Config) -> Result<Client, String> {
    let (client, connection) = config.connect(NoTls).await.map_err(words)?;
    tokio::spawn(connection);
    Ok(client)
}

fn has_code<T>(result: Result<T, tokio_postgres::Error>, code: SqlState) -> Outcome {
    match result {
        Err(error) if error.code() == Some(&code) => Ok(()),
        Err(error) => Err(format!("{error:?} instead of {code:?}")),
        Ok(_) => Err(format!("no error {code:?}")),
    }
}

async fn settings(number: usize) -> Outcome {
    let mut own = config();
    own.application_name(format!("rust {number}")).options(format!(
        "-c search_path=own{number} -c statement_timeout={}s -c TimeZone=Etc/GMT+{number}",
        41 + number
    ));
    let client = connected(&own).await?;
    for _ in 0..10 {
        let query = "SELECT concat_ws(' ', current_setting('application_name'),
            current_setting('search_path'), current_setting('statement_timeout'),
            current_setting('TimeZone'))";
        let said: String = client.query_one(query, &[]).await.map_err(words)?.get(0);
        let path = format!("rust {number} own{number} {}s Etc/GMT+{number}", 41 + number);
        same(said, path)?;
    }
    Ok(())
}

async fn prepared(client: Arc<Client>, number: usize) -> Outcome {
    let number = number as i32;
    let text = format!("SELECT {number} + $1::int");
    let kept = client.prepare(&text).await.map_err(words)?;
    for turn in 0..15 {
        let row = client.query_one(&kept, &[&turn]).await.map_err(words)?;
        same(row.get::<_, i32>(0), number + turn)?;
        let query = "SELECT $1::int * 1000 + $2::int";
        let row = client.query_one(query, &[&number, &turn]).await.map_err(words)?;
        same(row.get::<_, i32>(0), number * 1000 + turn)?;
        // Dropped statements are closed in the background.
        client.prepare(&format!("SELECT {turn} + $1::int")).await.map_err(words)?;
    }
    // Several queries at once on one connection are a pipeline.
    let queries = (0..40).map(|turn| {
        let (client, kept) = (client.clone(), kept.clone());
        async move { client.query_one(&kept, &[&turn]).await.map(|row| row.get::<_, i32>(0)) }
    });
    let sums = future::try_join_all(queries).await.map_err(words)?;
    same(sums, (0..40).map(|turn| turn + number).collect())?;
    has_code(client.prepare("SELECT * FROM nowhere").await, SqlState::UNDEFINED_TABLE)
}

async fn transactions(number: usize) -> Outcome {
    let mut client = connected(&config()).await?;
    let create = format!("CREATE TABLE item{number} (id int, name text)");
    client.batch_execute(&create).await.map_err(words)?;
    let insert = format!("INSERT INTO item{number} VALUES ($1, $2)");
    let insert = client.prepare(&insert).await.map_err(words)?;
    for turn in 0..10i32 {
        let builder = client.build_transaction().isolation_level(IsolationLevel::Serializable);
        let mut transaction = builder.start().await.map_err(words)?;
        transaction.execute(&insert, &[&turn, &"kept"]).await.map_err(words)?;
        let savepoint = transaction.savepoint("here").await.map_err(words)?;
        let divided = savepoint.query("SELECT 1 / $1::int", &[&0i32]).await;
        has_code(divided, SqlState::DIVISION_BY_ZERO)?;
        savepoint.rollback().await.map_err(words)?;
        transaction.commit().await.map_err(words)?;
        // Dropped in its middle, a transaction is rolled back in the background.
        let transaction = client.transaction().await.map_err(words)?;
        transaction.execute(&insert, &[&turn, &"dropped"]).await.map_err(words)?;
        drop(transaction);
    }
    let count = format!("SELECT count(*) FROM item{number}");
    let row = client.query_one(&count, &[]).await.map_err(words)?;
    same(row.get::<_, i64>(0), 10)
}

async fn copies(client: Arc<Client>, number: usize) -> Outcome {
    let create = format!("CREATE TABLE copy{number} (id int, name text)");
    client.batch_execute(&create).await.map_err(words)?;
    let query = format!("COPY copy{number} FROM STDIN");
    let sink = client.copy_in::<_, Cursor<Vec<u8>>>(&query).await.map_err(words)?;
    pin_mut!(sink);
    for id in 0..5000 {
        let line = Cursor::new(format!("{id}\tcopied\n").into_bytes());
        sink.send(line).await.map_err(words)?;
    }
    same(sink.finish().await.map_err(words)?, 5000)?;
    let query = format!("COPY copy{number} TO STDOUT");
    let out = client.copy_out(&query).await.map_err(words)?;
    let out: Vec<_> = out.try_collect().await.map_err(words)?;
    same(out.iter().map(|part| part.len()).sum::<usize>(), 5000 * 8 + 18890)?;
    let query = format!("COPY copy{number} FROM STDIN");
    let sink = client.copy_in::<_, Cursor<Vec<u8>>>(&query).await.map_err(words)?;
    pin_mut!(sink);
    let broken = Cursor::new(b"nonsense\n".to_vec());
    sink.send(broken).await.map_err(words)?;
    has_code(sink.finish().await, SqlState::INVALID_TEXT_REPRESENTATION)?;
    // Dropped in its middle, a COPY is ended by CopyFail.
    drop(client.copy_in::<_, Cursor<Vec<u8>>>(&query).await.map_err(words)?);
    let row = client.query_one("SELECT $1::int", &[&(number as i32)]).await.map_err(words)?;
    same(row.get::<_, i32>(0), number as i32)
}

async fn types(client: Arc<Client>, number: usize) -> Outcome {
    let (number, data) = (number as i64, vec![7u8; 50000]);
    let list = vec![1i64, 2, number];
    // A type of the database's own: tokio-postgres looks it up in the catalogue, with statements of
    // its own, between the Parse of the query and the rest.
    let create = format!("CREATE TYPE colour{number} AS ENUM ('red', 'green')");
    client.batch_execute(&create).await.map_err(words)?;
    let text = format!(
        "SELECT $1::int8, $2::text, $3::bytea, $4::int8[], 1.5e-300::float8, NULL::text,
            'red'::colour{number}"
    );
    let statement = client.prepare(&text).await.map_err(words)?;
    for _ in 0..7 {
        let values: [&(dyn ToSql + Sync); 4] = [&number, &"ünïcödé \\ '", &data, &list];
        let row = client.query_one(&statement, &values).await.map_err(words)?;
        same(row.get::<_, i64>(0), number)?;
        same(row.get::<_, &str>(1), "ünïcödé \\ '")?;
        same(row.get::<_, Vec<u8>>(2), data.clone())?;
        same(row.get::<_, Vec<i64>>(3), list.clone())?;
        same(row.get::<_, f64>(4), 1.5e-300)?;
        same(row.get::<_, Option<String>>(5), None)?;
        same(row.columns()[6].type_().name(), &format!("colour{number}"))?;
    }
    Ok(())
}

async fn portals(number: usize) -> Outcome {
    let mut client = connected(&config()).await?;
    let transaction = client.transaction().await.map_err(words)?;
    let query = "SELECT i + $1 FROM generate_series(1, 100) AS i";
    let portal = transaction.bind(query, &[&(number as i32)]).await.map_err(words)?;
    let mut seen = Vec::new();
    loop {
        let rows = transaction.query_portal(&portal, 7).await.map_err(words)?;
        if rows.is_empty() {
            break;
        }
        seen.extend(rows.iter().map(|row| row.get::<_, i32>(0) - number as i32));
    }
    same(seen, (1..=100).collect())?;
    transaction.commit().await.map_err(words)
}

async fn cancels(client: Arc<Client>, number: usize) -> Outcome {
    let token = client.cancel_token();
    let asking = tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_millis(200)).await;
            let _ = token.cancel_query(NoTls).await;
        }
    });
    let slept = client.query("SELECT pg_sleep(60)", &[]).await;
    asking.abort();
    has_code(slept, SqlState::QUERY_CANCELED)?;
    loop {
        match client.query_one("SELECT $1::int", &[&(number as i32)]).await {
            Ok(row) => return same(row.get::<_, i32>(0), number as i32),
            // A late request may still hit this connection.
            error => has_code(error, SqlState::QUERY_CANCELED)?,
        }
    }
}

async fn changed_tables(client: Arc<Client>, number: usize) -> Outcome {
    let table = format!("change{number}");
    let create = format!("CREATE TABLE {table} (a int); INSERT INTO {table} VALUES (1)");
    client.batch_execute(&create).await.map_err(words)?;
    let text = format!("SELECT * FROM {table}");
    let kept = client.prepare(&text).await.map_err(words)?;
    same(client.query_one(&kept, &[]).await.map_err(words)?.len(), 1)?;
    let alter = format!("ALTER TABLE {table} ADD COLUMN b text DEFAULT 'new'");
    client.batch_execute(&alter).await.map_err(words)?;
    // The statement remembers the columns: the user has to prepare it anew.
    if let Err(error) = client.query_one(&kept, &[]).await {
        has_code::<()>(Err(error), SqlState::FEATURE_NOT_SUPPORTED)?;
    }
    for _ in 0..3 {
        same(client.query_one(&text, &[]).await.map_err(words)?.len(), 2)?;
    }
    Ok(())
}

async fn notifications(other: Arc<Client>, number: usize) -> Outcome {
    let (client, mut connection) = config().connect(NoTls).await.map_err(words)?;
    let stream = futures_util::stream::poll_fn(move |context| connection.poll_message(context));
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(stream.for_each(move |message| {
        if let Ok(AsyncMessage::Notification(notice)) = message {
            let _ = sender.send(notice.payload().to_string());
        }
        future::ready(())
    }));
    client.batch_execute(&format!("LISTEN news{number}")).await.map_err(words)?;
    let notify = format!("NOTIFY news{number}, 'hello'");
    other.batch_execute(&notify).await.map_err(words)?;
    same(receiver.recv().await, Some("hello".to_string()))
}

async fn console() -> Outcome {
    let mut client = connected(&config()).await?;
    let row = client.query_one("SELECT 1", &[]).await.map_err(words)?;
    same(row.get::<_, i32>(0), 1)?;
    let transaction = client.transaction().await.map_err(words)?;
    let rows = transaction.query("SHOW POOLS", &[]).await.map_err(words)?;
    same(rows.is_empty(), false)?;
    transaction.commit().await.map_err(words)?;
    let failure = client.query("SELECT * FROM x", &[]).await.err();
    same(failure.and_then(|error| error.code().cloned()), Some(SqlState::PROTOCOL_VIOLATION))?;
    client.simple_query("").await.map_err(words)?;
    Ok(())
}

#[tokio::main]
async fn main() {
    if is_console() {
        check_for(1, "the console", |_| console()).await;
        finish()
    }
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(Arc::new(connected(&config()).await.unwrap()));
    }
    let client = |number: usize| clients[number].clone();
    check("startup parameters stay the client's own", settings).await;
    check("statements are prepared by name, in pipelines", |i| prepared(client(i), i)).await;
    check("transactions, savepoints and errors", transactions).await;
    check("COPY in and out, broken and given up", |i| copies(client(i), i)).await;
    check("types in binary", |i| types(client(i), i)).await;
    check("portals with row limits", portals).await;
    check("cancels", |i| cancels(client(i), i)).await;
    // Alone: a server that never had the plan reports no change to a client that remembers the columns.
    check_for(1, "a changed table", |i| changed_tables(client(i), i)).await;
    if has_session() {
        check("LISTEN", |i| notifications(client(i), i)).await;
    }
    finish()
}
