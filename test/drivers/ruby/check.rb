# SPDX-License-Identifier: ISC
# What the programs in Ruby share: clients that work at once, and a report in TAP.

CLIENTS = 6
IS_CONSOLE = ENV["DRIVER_MODE"] == "console"
RESULTS = []
$stdout.sync = true

# Run the block for every client at once; all have to succeed.
def check(name, count = CLIENTS)
  failures = (0...count).map do |number|
    Thread.new do
      Thread.current.report_on_exception = false
      begin
        yield number
        nil
      rescue StandardError => failure
        failure
      end
    end
  end.map(&:value).compact
  RESULTS << failures.empty?
  puts "#{failures.empty? ? "ok" : "not ok"} #{RESULTS.size} - #{name}"
  puts failures.first.full_message(highlight: false).gsub(/^/, "# ") unless failures.empty?
end

def same(seen, wanted)
  raise "#{seen.inspect} instead of #{wanted.inspect}" unless seen == wanted
end

# The error of this class that the block raises.
def fails(kind)
  yield
rescue kind => failure
  failure
else
  raise "no #{kind} was raised"
end

def finish
  puts "1..#{RESULTS.size}"
  exit!(RESULTS.any? && RESULTS.all? ? 0 : 1)
end
