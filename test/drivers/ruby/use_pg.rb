# SPDX-License-Identifier: ISC
# The gem pg with its defaults: exec_params on the unnamed statement, prepare by name, COPY.
require "pg"
require_relative "check"

CONNECTIONS = Array.new(CLIENTS)

if IS_CONSOLE
  check("the console", 1) do
    connection = PG.connect(application_name: "tool")
    same connection.exec_params("SELECT 1", []).getvalue(0, 0), "1"
    same connection.exec("SELECT current_user").getvalue(0, 0), "admin"
    connection.transaction { |inside| raise "no pools" if inside.exec("SHOW POOLS").ntuples == 0 }
    fails(PG::Error) { connection.exec("SELECT * FROM x") }
    same connection.transaction_status, PG::PQTRANS_IDLE
    connection.prepare("config", "SHOW CONFIG")
    raise "no rows" if connection.exec_prepared("config").ntuples < 50
    connection.close
  end
  finish
end

check("connects") do |number|
  connection = CONNECTIONS[number] = PG.connect(application_name: "ruby #{number}")
  same connection.exec("SHOW application_name").getvalue(0, 0), "ruby #{number}"
  connection.exec("CREATE TABLE item#{number} (id int, name text)")
end

check("startup parameters stay the client's own") do |number|
  connection = PG.connect(options: "-c search_path=own#{number} -c TimeZone=Etc/GMT+#{number}")
  10.times do
    row = connection.exec("SELECT current_setting('search_path'), current_setting('TimeZone')")
    same row.values, [["own#{number}", "Etc/GMT+#{number}"]]
  end
  connection.close
end

check("statements with and without a name") do |number|
  connection = CONNECTIONS[number]
  connection.prepare("words", "SELECT #{number} || ' ' || $1::text")
  15.times do |turn|
    sum = connection.exec_params("SELECT $1::int * 1000 + $2::int", [number, turn])
    same sum.getvalue(0, 0).to_i, number * 1000 + turn
    same connection.exec_prepared("words", [turn]).getvalue(0, 0), "#{number} #{turn}"
  end
  same connection.describe_prepared("words").nfields, 1
  connection.exec("DEALLOCATE words")
  fails(PG::InvalidSqlStatementName) { connection.exec_prepared("words", [1]) }
  connection.prepare("words", "SELECT #{number + 1}")
  same connection.exec_prepared("words").getvalue(0, 0).to_i, number + 1
  connection.exec("DEALLOCATE ALL")
  # Parse and Sync, then Bind and Sync, on the unnamed statement.
  connection.prepare("", "SELECT #{number} + $1::int")
  10.times { |turn| same connection.exec_prepared("", [turn]).getvalue(0, 0).to_i, number + turn }
end

check("transactions and errors") do |number|
  connection = CONNECTIONS[number]
  10.times do |turn|
    connection.transaction do |inner|
      inner.exec_params("INSERT INTO item#{number} VALUES ($1, 'kept')", [turn])
    end
    fails(PG::DivisionByZero) do
      connection.transaction do |inner|
        inner.exec_params("INSERT INTO item#{number} VALUES ($1, 'dropped')", [turn])
        inner.exec_params("SELECT 1 / $1::int", [0])
      end
    end
  end
  same connection.exec("SELECT count(*) FROM item#{number}").getvalue(0, 0), "10"
end

check("pipelines and single rows") do |number|
  connection = CONNECTIONS[number]
  connection.enter_pipeline_mode
  20.times { |turn| connection.send_query_params("SELECT $1::int", [turn + number]) }
  connection.pipeline_sync
  20.times do |turn|
    same connection.get_result.getvalue(0, 0).to_i, turn + number
    same connection.get_result, nil
  end
  same connection.get_result.result_status, PG::PGRES_PIPELINE_SYNC
  connection.exit_pipeline_mode
  connection.send_query("SELECT generate_series(1, 100)")
  connection.set_single_row_mode
  seen = []
  connection.get_result.stream_each_row { |row| seen << row[0].to_i }
  same seen, (1..100).to_a
  same connection.get_result, nil
end

check("COPY in and out") do |number|
  connection = CONNECTIONS[number]
  connection.copy_data("COPY item#{number} FROM STDIN") do
    5000.times { |id| connection.put_copy_data("#{id + 5000}\tcopied\n") }
  end
  count = 0
  query = "COPY (SELECT * FROM item#{number} WHERE id >= 5000) TO STDOUT"
  connection.copy_data(query) { count += 1 while connection.get_copy_data }
  same count, 5000
  fails(PG::InvalidTextRepresentation) do
    connection.copy_data("COPY item#{number} FROM STDIN") { connection.put_copy_data("no\n") }
  end
  same connection.exec_params("SELECT $1::int", [number]).getvalue(0, 0).to_i, number
end

check("cancels") do |number|
  connection = CONNECTIONS[number]
  connection.send_query("SELECT pg_sleep(60)")
  connection.cancel until connection.block(0.2)
  fails(PG::QueryCanceled) { connection.get_last_result }
  begin
    same connection.exec_params("SELECT $1::int", [number]).getvalue(0, 0).to_i, number
  rescue PG::QueryCanceled
    retry
  end
end

check("LISTEN") do |number|
  connection = PG.connect
  connection.exec("LISTEN news#{number}")
  CONNECTIONS[number].exec("NOTIFY news#{number}, 'hello'")
  connection.wait_for_notify(20) { |_, _, payload| same payload, "hello" } or raise "no news"
  connection.close
end

check("closes") { |number| CONNECTIONS[number].close }
finish
