// Package scripted is a model provider that plays a script instead of calling a
// model: for demonstrations, examples and tests, without a key or a network.
//
// A script is a YAML file. Its turns are played in order, one for each call of
// the provider:
//
//	name: greeter            # the model's name
//	latency: 20ms            # before each delta; default none
//	turns:
//	  - when: {user: "(?i)hello"}                 # a regular expression
//	    reasoning: They greet me.
//	    text: I will look who is there.
//	    calls:
//	      - name: read_file
//	        args: {file_path: "${workspace}/names.txt"}
//	      - {name: shell, args: '{"command": "who'}  # raw: sent unchanged
//	  - when: {tool: read_file, result: Ann}      # isError: true for a failure
//	    error: {code: RATE_LIMITED, status: 429, retryAfterMs: 500, message: slow down}
//	  - text: Hello, Ann.
//	    latency: 0s
//	    stop: end            # default tool_calls or end
//	    usage: {input: 120, cachedInput: 100, cacheWrite: 0, output: 4, reasoning: 0}
//	  - text: And then the line
//	    cut: true            # the stream breaks off
//
// A turn with a "when" is played only if it matches the last message of the
// request: a text of the user, or a result of that tool in the last round, which
// must be a success, or a failure with isError. Otherwise the call fails with an
// error that describes the message: a script never continues as if its tools had
// worked.
package scripted
