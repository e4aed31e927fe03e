# SPDX-License-Identifier: ISC
# ActiveRecord with what needs the session: migrations under an advisory lock of the session, variables
# that it SETs when it connects, a search_path and a role that are set for a connection.
require "active_record"
require_relative "check"

def options(name, **more)
  {
    adapter: "postgresql", host: ENV["PGHOST"], port: ENV["PGPORT"], username: ENV["PGUSER"],
    password: ENV["PGPASSWORD"], database: ENV["PGDATABASE"], pool: CLIENTS + 2,
    application_name: name, **more,
  }
end

# A pool of its own for each client, as each process of an application has: variables, timeouts.
class Tenant < ActiveRecord::Base
  self.abstract_class = true
end

TENANTS = (0...CLIENTS).map do |number|
  Class.new(Tenant) do
    self.abstract_class = true
    define_singleton_method(:name) { "Tenant#{number}" }
    establish_connection(options("tenant #{number}", schema_search_path: "own#{number}, public",
                                 variables: { statement_timeout: "#{50 + number}s", lock_timeout: "20s",
                                              "app.tenant": "t#{number}" }))
  end
end

ActiveRecord::Base.establish_connection(options("rails", variables: { statement_timeout: "50s" }))
ActiveRecord::Migration.verbose = false

class MakeAuthors < ActiveRecord::Migration::Current
  def change
    create_table(:authors) { |table| table.string :name, null: false }
  end
end

class IndexAuthors < ActiveRecord::Migration::Current
  disable_ddl_transaction!

  def change
    add_index :authors, :name, algorithm: :concurrently
  end
end

class MakeSchemas < ActiveRecord::Migration::Current
  def up
    (0...CLIENTS).each do |number|
      create_schema "own#{number}"
      execute "CREATE TABLE own#{number}.items (id serial PRIMARY KEY, name text)"
    end
  end

  def down
    (0...CLIENTS).each { |number| execute "DROP SCHEMA own#{number} CASCADE" }
  end
end

MIGRATIONS = [MakeAuthors, IndexAuthors, MakeSchemas].map.with_index(1) do |kind, version|
  [kind, version]
end

# Rails reads migrations from files; these stand for them.
def migrations
  MIGRATIONS.map { |kind, version| kind.new(kind.name, version) }
end

def migrate(direction, version = nil)
  schema = ActiveRecord::Base.connection.schema_migration
  schema.create_table
  ActiveRecord::Migrator.new(direction, migrations, schema, version).migrate
end

# Rails makes this table before it takes the lock.
check("makes the table of migrations", 1) do
  ActiveRecord::Base.connection_pool.with_connection do |connection|
    connection.schema_migration.create_table
    ActiveRecord::InternalMetadata.create_table
  end
end

# The lock is tried once: of several that migrate at once, each succeeds or finds it taken.
check("migrates once, though several do", 3) do
  ActiveRecord::Base.connection_pool.with_connection do
    begin
      migrate(:up)
    rescue ActiveRecord::ConcurrentMigrationError
      sleep 0.05
      retry
    end
  end
end

check("is migrated, and the lock is free", 1) do
  ActiveRecord::Base.connection_pool.with_connection do |connection|
    same connection.select_values("SELECT version FROM schema_migrations ORDER BY 1"), %w[1 2 3]
    locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = " \
            "(SELECT oid FROM pg_database WHERE datname = current_database())"
    same connection.select_value(locks), 0
    same connection.index_exists?(:authors, :name), true
  end
end

check("variables, a search_path and a tenant stay the connection's own") do |number|
  tenant = TENANTS[number]
  items = Class.new(tenant) { self.table_name = "items" }
  8.times do |turn|
    tenant.connection_pool.with_connection do |connection|
      row = connection.select_rows("SELECT current_setting('statement_timeout'), " \
        "current_setting('lock_timeout'), current_setting('app.tenant'), current_setting('search_path')")
      same row.first, ["#{50 + number}s", "20s", "t#{number}", "own#{number}, public"]
      items.create!(name: "item #{turn}")
      same items.count, turn + 1
    end
  end
end

check("a role, and a search_path that changes") do |number|
  tenant = TENANTS[number]
  tenant.connection_pool.with_connection do |connection|
    connection.execute("SET ROLE drivers_web")
    8.times do
      same connection.select_value("SELECT current_user"), "drivers_web"
      fails(ActiveRecord::StatementInvalid) { connection.execute("DELETE FROM authors") }
    end
    connection.execute("RESET ROLE")
    connection.schema_search_path = "own#{(number + 1) % CLIENTS}"
    8.times { same connection.select_value("SELECT current_schema"), "own#{(number + 1) % CLIENTS}" }
  end
end

check("DISCARD ALL of a connection that is reset") do |number|
  tenant = TENANTS[number]
  tenant.connection_pool.with_connection do |connection|
    connection.execute("CREATE TEMP TABLE mine (a int)")
    connection.execute("SET app.tenant = 'another'")
    same connection.select_value("SELECT count(*) FROM mine"), 0
    connection.reset!
    same connection.select_value("SHOW app.tenant"), "t#{number}"
    same connection.select_value("SHOW statement_timeout"), "#{50 + number}s"
    same connection.select_value("SELECT to_regclass('pg_temp.mine') IS NULL"), true
  end
end

check("goes back", 1) do
  ActiveRecord::Base.connection_pool.with_connection { migrate(:down, 0) }
end

check("closes", 1) do
  [ActiveRecord::Base, *TENANTS].each { |base| base.connection_pool.disconnect! }
end
finish
