# SPDX-License-Identifier: ISC
# ActiveRecord with the defaults of Rails: it sets the session's parameters when it connects, prepares
# statements a1, a2, ... by name, and checks connections before it uses them.
require "active_record"
require_relative "check"

def options(number)
  {
    adapter: "postgresql", host: ENV["PGHOST"], port: ENV["PGPORT"], username: ENV["PGUSER"],
    password: ENV["PGPASSWORD"], database: ENV["PGDATABASE"], pool: CLIENTS + 2,
    application_name: "rails #{number}",
    variables: { statement_timeout: "40s" },
  }
end

class Author < ActiveRecord::Base
  has_many :books, dependent: :destroy
  validates :name, presence: true
end

class Book < ActiveRecord::Base
  belongs_to :author
end

class MakeTables < ActiveRecord::Migration::Current
  def change
    create_table :authors do |table|
      table.string :name, null: false, index: { unique: true }
      table.jsonb :details
      table.timestamps
    end
    create_table :books do |table|
      table.references :author, foreign_key: true
      table.string :title
      table.decimal :price, precision: 10, scale: 2
    end
  end
end

ActiveRecord::Base.establish_connection(options(0))
ActiveRecord::Migration.verbose = false

# Each block has a connection of the pool, as a request of a web application has.
def request(&block)
  ActiveRecord::Base.connection_pool.with_connection(&block)
end

check("migrates", 1) do
  request do
    MakeTables.new.migrate(:up)
    same ActiveRecord::Base.connection.tables.sort, %w[authors books]
  end
end

check("a session's settings") do |number|
  request do |connection|
    10.times do
      connection.verify!
      same connection.select_value("SHOW standard_conforming_strings"), "on"
      same connection.select_value("SHOW TimeZone"), "UTC"
      same connection.select_value("SELECT '#{number}'::text"), number.to_s
    end
  end
end

check("objects are kept and found") do |number|
  8.times do |turn|
    request do
      author = Author.create!(name: "author #{number} #{turn}", details: { turn: turn })
      5.times { |i| author.books.create!(title: "book #{i}", price: i) }
      same Author.find_by!(name: author.name).details, { "turn" => turn }
      same author.books.where("price > ?", 1).sum(:price), 9
      author.books.first.update!(price: 100)
      author.books.find_by(title: "book 1").destroy!
      same author.books.order(:id).pluck(:price).map(&:to_i), [100, 2, 3, 4]
      Book.insert_all!((10...60).map { |i| { author_id: author.id, title: "more #{i}", price: i } })
      same Book.where(author: author).find_each(batch_size: 7).count, 54
    end
  end
  request { same Author.where("name LIKE ?", "author #{number} %").count, 8 }
end

check("transactions, savepoints and errors") do |number|
  8.times do |turn|
    request do
      Author.transaction do
        Author.create!(name: "tx #{number} #{turn}")
        fails(ActiveRecord::RecordNotUnique) do
          Author.transaction(requires_new: true) { Author.create!(name: "tx #{number} #{turn}") }
        end
        Author.lock.find_by!(name: "tx #{number} #{turn}").touch
      end
      Author.transaction(isolation: :serializable) do
        Author.create!(name: "never #{number}")
        raise ActiveRecord::Rollback
      end
      fails(ActiveRecord::StatementInvalid) { Author.where("nothing = 1").to_a }
    end
  end
  request { same Author.where("name LIKE ?", "never%").count, 0 }
end

check("a session's parameters are reset and set anew") do |number|
  request do |connection|
    connection.reset!
    same Author.where(id: -number).count, 0
    connection.reconnect!
    same Author.where(id: -number).count, 0
    connection.clear_cache!
    same Author.where(id: -number).count, 0
  end
end

check("a changed table") do |number|
  request do |connection|
    connection.create_table("changes#{number}") { |table| table.integer :a }
    model = Class.new(ActiveRecord::Base) { self.table_name = "changes#{number}" }
    model.create!(a: 1)
    5.times { same model.where(a: 1).first.attributes.size, 2 }
    alter = lambda do |column, value|
      # With another connection: the one that alters a table drops its own statements.
      Thread.new do
        request { |other| other.add_column("changes#{number}", column, :string, default: value) }
      end.join
      model.reset_column_information
    end
    alter.call(:b, "new")
    # Rails prepares anew by itself, outside of a transaction and in one.
    5.times { same model.where(a: 1).take[:b], "new" }
    alter.call(:c, "newer")
    model.transaction { same model.where(a: 1).take[:c], "newer" }
  end
end

check("closes", 1) { ActiveRecord::Base.connection_pool.disconnect! }
finish
