// Package scripted is a model provider that plays a script instead of asking a
// model: for demonstrations, examples and tests, without a key or a network.
//
// A script is a YAML file. Its turns are played in order, one for each call of
// the provider:
//
//	name: greeter            # the model's name
//	latency: 20ms            # before each delta; none if left out
//	turns:
//	  - when: {user: "(?i)hello"}                 # a regular expression
//	    reasoning: They greet me.
//	    text: I will look who is there.
//	    calls:
//	      - name: read_file
//	        args: {file_path: "${workspace}/names.txt"}
//	      - {name: shell, args: '{"command": "who'}  # raw: sent as it stands
//	  - when: {tool: read_file, result: Ann}      # isError: true for a failure
//	    error: {code: RATE_LIMITED, status: 429, retryAfterMs: 500, message: slow down}
//	  - text: Hello, Ann.
//	    latency: 0s
//	    stop: end            # by default tool_calls or end
//	    usage: {input: 120, cachedInput: 100, cacheWrite: 0, output: 4, reasoning: 0}
//	  - text: And then the line
//	    cut: true            # went dead
//
// A turn with a "when" is played only if the last message of the request is
// what it says: a text of the user's, or a result of that tool among those of
// the last round, which must not be a failure unless isError says so. Anything
// else fails the call and says what came instead: a script never goes on as if
// its tools had worked.
package scripted
