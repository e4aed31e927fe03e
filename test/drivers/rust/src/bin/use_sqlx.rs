// SPDX-License-Identifier: ISC
//! sqlx with its defaults: a pool, and a cache of statements sqlx_s_1, sqlx_s_2, ... by name.

use std::time::Duration;

use drivers::{check, check_for, finish, has_session, is_console, same, variable, words, Outcome, CLIENTS};
use futures_util::TryStreamExt;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, Connection, Executor, Row};

fn options() -> PgConnectOptions {
    PgConnectOptions::new()
        .host(&variable("PGHOST"))
        .port(variable("PGPORT").parse().unwrap())
        .username(&variable("PGUSER"))
        .password(&variable("PGPASSWORD"))
        .database(&variable("PGDATABASE"))
}

fn has_code<T>(result: Result<T, sqlx::Error>, code: &str) -> Outcome {
    match result {
        Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some(code) => Ok(()),
        Err(error) => Err(format!("{error:?} instead of {code}")),
        Ok(_) => Err(format!("no error {code}")),
    }
}

async fn run(pool: &PgPool, text: String) -> Outcome {
    pool.execute(AssertSqlSafe(text)).await.map(|_| ()).map_err(words)
}

async fn settings(number: usize) -> Outcome {
    let path = format!("own{number}");
    let time = format!("{}s", 41 + number);
    let own = [("search_path", path.as_str()), ("statement_timeout", time.as_str())];
    let options = options().application_name(&format!("sqlx {number}")).options(own);
    let mut client = sqlx::PgConnection::connect_with(&options).await.map_err(words)?;
    for _ in 0..10 {
        let query = "SELECT concat_ws(' ', current_setting('application_name'),
            current_setting('search_path'), current_setting('statement_timeout'),
            current_setting('TimeZone'), current_setting('extra_float_digits'))";
        let said: String =
            sqlx::query_scalar(query).fetch_one(&mut client).await.map_err(words)?;
        // sqlx sets the time zone UTC and extra_float_digits in its startup packet.
        same(said, format!("sqlx {number} {path} {time} UTC 2"))?;
    }
    client.close().await.map_err(words)
}

async fn prepared(pool: PgPool, number: usize) -> Outcome {
    let number = number as i32;
    for turn in 0..15i32 {
        let text = format!("SELECT {number} + $1");
        let query = sqlx::query_scalar(AssertSqlSafe(text)).bind(turn);
        same(query.fetch_one(&pool).await.map_err(words)?, number + turn)?;
        let query = sqlx::query_scalar("SELECT $1 * 1000 + $2").bind(number).bind(turn);
        same(query.fetch_one(&pool).await.map_err(words)?, number * 1000 + turn)?;
        let query = sqlx::query_scalar("SELECT $1 - 1").bind(number).persistent(false);
        same(query.fetch_one(&pool).await.map_err(words)?, number - 1)?;
    }
    Ok(())
}

/// More than the cache of a connection keeps: sqlx closes the least recently used statements.
async fn many_prepared(number: usize) -> Outcome {
    let options = options().statement_cache_capacity(5);
    let mut client = sqlx::PgConnection::connect_with(&options).await.map_err(words)?;
    for turn in 0..40 {
        let text = format!("SELECT $1::int + {}", turn % 12);
        let query = sqlx::query_scalar(AssertSqlSafe(text)).bind(number as i32);
        same(query.fetch_one(&mut client).await.map_err(words)?, number as i32 + turn % 12)?;
    }
    client.clear_cached_statements().await.map_err(words)?;
    client.ping().await.map_err(words)?;
    client.close().await.map_err(words)
}

async fn transactions(pool: PgPool, number: usize) -> Outcome {
    run(&pool, format!("CREATE TABLE item{number} (id int, name text)")).await?;
    let insert = format!("INSERT INTO item{number} VALUES ($1, $2)");
    for turn in 0..10i32 {
        let mut transaction = pool.begin().await.map_err(words)?;
        let query = sqlx::query(AssertSqlSafe(insert.clone())).bind(turn).bind("kept");
        query.execute(&mut *transaction).await.map_err(words)?;
        let mut savepoint = transaction.begin().await.map_err(words)?;
        let query = sqlx::query("SELECT 1 / $1").bind(0i32);
        has_code(query.execute(&mut *savepoint).await, "22012")?;
        savepoint.rollback().await.map_err(words)?;
        transaction.commit().await.map_err(words)?;
        // Dropped in its middle, a transaction is rolled back when its connection is next used.
        let mut transaction = pool.begin().await.map_err(words)?;
        let query = sqlx::query(AssertSqlSafe(insert.clone())).bind(turn).bind("dropped");
        query.execute(&mut *transaction).await.map_err(words)?;
    }
    let count = AssertSqlSafe(format!("SELECT count(*) FROM item{number}"));
    let count: i64 = sqlx::query_scalar(count).fetch_one(&pool).await.map_err(words)?;
    same(count, 10)?;
    has_code(sqlx::query("SELECT * FROM nowhere").execute(&pool).await, "42P01")
}

async fn copies(pool: PgPool, number: usize) -> Outcome {
    run(&pool, format!("CREATE TABLE copy{number} (id int, name text)")).await?;
    let mut client = pool.acquire().await.map_err(words)?;
    let query = format!("COPY copy{number} FROM STDIN");
    let mut copy = client.copy_in_raw(&query).await.map_err(words)?;
    let lines: String = (10000..20000).map(|id| format!("{id}\tcopied\n")).collect();
    copy.send(lines.as_bytes()).await.map_err(words)?;
    same(copy.finish().await.map_err(words)?, 10000)?;
    let out = format!("COPY copy{number} TO STDOUT");
    let out = client.copy_out_raw(&out).await.map_err(words)?;
    let out: Vec<_> = out.try_collect().await.map_err(words)?;
    same(out.concat().len(), lines.len())?;
    let mut copy = client.copy_in_raw(&query).await.map_err(words)?;
    copy.send(&b"nonsense\n"[..]).await.map_err(words)?;
    has_code(copy.finish().await, "22P02")?;
    let copy = client.copy_in_raw(&query).await.map_err(words)?;
    copy.abort("of ours").await.map_err(words)?;
    let query = sqlx::query_scalar("SELECT $1").bind(number as i32);
    same(query.fetch_one(&mut *client).await.map_err(words)?, number as i32)
}

async fn types(pool: PgPool, number: usize) -> Outcome {
    let (number, data, list) = (number as i64, vec![7u8; 50000], vec![1i64, 2, number as i64]);
    run(&pool, format!("CREATE TYPE colour{number} AS ENUM ('red', 'green')")).await?;
    let text = format!("SELECT $1, $2, $3, $4, 1.5e-300::float8, 'red'::colour{number}");
    for _ in 0..7 {
        let query = sqlx::query(AssertSqlSafe(text.clone()));
        let query = query.bind(number).bind("ünïcödé \\ '").bind(&data).bind(&list);
        let row = query.fetch_one(&pool).await.map_err(words)?;
        same(row.get::<i64, _>(0), number)?;
        same(row.get::<&str, _>(1), "ünïcödé \\ '")?;
        same(row.get::<Vec<u8>, _>(2), data.clone())?;
        same(row.get::<Vec<i64>, _>(3), list.clone())?;
        same(row.get::<f64, _>(4), 1.5e-300)?;
    }
    Ok(())
}

/// A time limit of the user: sqlx sends no cancel request, it reads the answer to its end or closes.
async fn time_limits(pool: PgPool, number: usize) -> Outcome {
    for _ in 0..2 {
        let sleep = sqlx::query("SELECT pg_sleep(0.6)").execute(&pool);
        let slept = tokio::time::timeout(Duration::from_millis(200), sleep).await;
        same(slept.is_err(), true)?;
        let query = sqlx::query_scalar("SELECT $1").bind(number as i32);
        same(query.fetch_one(&pool).await.map_err(words)?, number as i32)?;
    }
    Ok(())
}

async fn changed_tables(pool: PgPool, number: usize) -> Outcome {
    let table = format!("change{number}");
    run(&pool, format!("CREATE TABLE {table} (a int)")).await?;
    run(&pool, format!("INSERT INTO {table} VALUES (1)")).await?;
    let mut client = pool.acquire().await.map_err(words)?;
    let text = format!("SELECT * FROM {table}");
    for _ in 0..3 {
        let row = sqlx::query(AssertSqlSafe(text.clone())).fetch_one(&mut *client).await;
        same(row.map_err(words)?.len(), 1)?;
    }
    run(&pool, format!("ALTER TABLE {table} ADD COLUMN b text DEFAULT 'new'")).await?;
    // sqlx remembers the columns, and returns the error until its cache is cleared.
    let row = sqlx::query(AssertSqlSafe(text.clone())).fetch_one(&mut *client).await;
    if row.is_err() {
        has_code(row, "0A000")?;
    }
    client.clear_cached_statements().await.map_err(words)?;
    for _ in 0..3 {
        let row = sqlx::query(AssertSqlSafe(text.clone())).fetch_one(&mut *client).await;
        same(row.map_err(words)?.len(), 2)?;
    }
    Ok(())
}

async fn notifications(pool: PgPool, number: usize) -> Outcome {
    let own = PgPoolOptions::new().connect_with(options()).await.map_err(words)?;
    let mut listener = PgListener::connect_with(&own).await.map_err(words)?;
    listener.listen(&format!("news{number}")).await.map_err(words)?;
    let notify = format!("SELECT pg_notify('news{number}', 'hello')");
    run(&pool, notify).await?;
    same(listener.recv().await.map_err(words)?.payload(), "hello")
}

async fn console() -> Outcome {
    let pool = PgPoolOptions::new().max_connections(2).connect_with(options()).await.map_err(words)?;
    for _ in 0..3 {
        let row = pool.fetch_one("SELECT 1").await.map_err(words)?;
        same(row.get::<i32, _>(0), 1)?;
        let mut transaction = pool.begin().await.map_err(words)?;
        transaction.fetch_all("SHOW POOLS").await.map_err(words)?;
        transaction.rollback().await.map_err(words)?;
        has_code(pool.execute("SELECT * FROM x").await, "08P01")?;
    }
    Ok(())
}

#[tokio::main]
async fn main() {
    if is_console() {
        check_for(1, "the console", |_| console()).await;
        finish()
    }
    let mut pools = Vec::new();
    for _ in 0..CLIENTS {
        let pool = PgPoolOptions::new().max_connections(3);
        pools.push(pool.connect_with(options()).await.unwrap());
    }
    let pool = |number: usize| pools[number].clone();
    check("startup parameters stay the client's own", settings).await;
    check("statements are prepared by name", |i| prepared(pool(i), i)).await;
    check("statements are closed past the cache's size", many_prepared).await;
    check("transactions, savepoints and errors", |i| transactions(pool(i), i)).await;
    check("COPY in and out, broken and given up", |i| copies(pool(i), i)).await;
    check("types in binary", |i| types(pool(i), i)).await;
    check("time limits", |i| time_limits(pool(i), i)).await;
    // Alone: a server that never had the plan reports no change to a client that remembers the columns.
    check_for(1, "a changed table", |i| changed_tables(pool(i), i)).await;
    if has_session() {
        check("LISTEN", |i| notifications(pool(i), i)).await;
    }
    finish()
}
