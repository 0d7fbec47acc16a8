package sandbox

import (
	"slices"
	"testing"
)

func TestExplain(t *testing.T) {
	p := &Profile{
		Writable: []string{"/ws"}, ReadOnly: []string{"/ws/.git/", "/ws/.envrc"}, Masked: []string{"/home/u/.ssh", "/ws/.env"},
		Readable: []string{"/tmp/seen"},
	}
	tests := []struct {
		output string
		level  Level // empty means Namespace
		want   []Cause
		full   bool // network
	}{
		{output: "bash: line 1: /etc/x: Read-only file system\n", want: []Cause{{"/etc/x", Outside}}},
		{output: "/bin/sh: 1: cannot create /etc/x: Read-only file system\n", want: []Cause{{"/etc/x", Outside}}},
		{output: "touch: cannot touch '/etc/x y': Read-only file system\n", want: []Cause{{"/etc/x y", Outside}}},
		{output: "touch: cannot touch \u2018/etc/x\u2019: Read-only file system\n", want: []Cause{{"/etc/x", Outside}}},
		{output: "open /home/u/.cache/f: read-only file system\n", want: []Cause{{"/home/u/.cache/f", Outside}}},
		{output: "OSError: [Errno 30] Read-only file system: '/usr/lib/x'\n", want: []Cause{{"/usr/lib/x", Outside}}},
		{output: "Error: EROFS: read-only file system, open '/usr/x'\n", want: []Cause{{"/usr/x", Outside}}},
		{output: "cat: /home/u/.ssh/id: Permission denied\n", want: []Cause{{"/home/u/.ssh/id", Hidden}}},
		{output: "cat: .env: Permission denied\n", want: []Cause{{"/ws/.env", Hidden}}},
		{output: "mv: cannot move '.git' to '.git2': Device or resource busy\n", want: []Cause{{"/ws/.git", Protected}}},
		{output: "fatal: Unable to create '/ws/.git/index.lock': Read-only file system\n", want: []Cause{{"/ws/.git/index.lock", Protected}}},
		{output: "sh: x: Read-only file system\nsh: /etc/x: Read-only file system\nsh: /etc/x: Read-only file system\n", want: []Cause{{"/etc/x", Outside}}},
		{output: "cat: /etc/shadow: Permission denied\n"},
		{output: "sh: 1: cannot create /etc/x: Permission denied\n", level: Landlock, want: []Cause{{"/etc/x", Outside}}},
		{output: "sh: 1: cannot create /tmp/seen/x: Read-only file system\n", want: []Cause{{"/tmp/seen/x", Outside}}},
		{output: "sh: 1: cannot create /tmp/x: Read-only file system\n"},
		{output: "chmod: changing permissions of '/etc/x': Operation not permitted\n", level: Landlock, want: []Cause{{"/etc/x", Outside}}},
		{output: "sh: 1: ./built: Permission denied\n", level: Landlock, want: []Cause{{"/ws", Beside}}},
		{output: "sh: /ws/sub/x: Permission denied\n", level: Landlock},
		{output: "curl: (6) Could not resolve host: example.org\n", want: []Cause{{"example.org", NoNetwork}}},
		{output: "dial tcp 1.2.3.4:443: connect: network is unreachable\n", want: []Cause{{Kind: NoNetwork}}},
		{output: "curl: (6) Could not resolve host: example.org\n", full: true},
		{output: "curl: (7) Failed to connect to localhost port 8080 after 0 ms: Couldn't connect to server\n", want: []Cause{{"localhost:8080", Unserved}}},
		{output: "dial tcp 127.0.0.1:5432: connect: connection refused\n", want: []Cause{{"localhost:5432", Unserved}}},
		{output: "psql: error: connection to server at \"localhost\" (127.0.0.1), port 5433 failed: Connection refused\n", want: []Cause{{"localhost:5433", Unserved}}},
		{output: "dial tcp 127.0.0.1:5432: connect: connection refused\n", full: true},
		{output: "dial tcp 10.0.0.1:5432: connect: connection refused\n"},
		{output: "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?\n", want: []Cause{{"/var/run/docker.sock", Socket}}},
		{output: "dial unix /run/x.sock: connect: no such file or directory\n", want: []Cause{{"/run/x.sock", Socket}}},
		{output: "git@example.org: Permission denied (publickey).\n", want: []Cause{{Kind: Keys}}},
		{output: "fatal: could not read Username for 'https://example.org': terminal prompts disabled\n", want: []Cause{{Kind: Keys}}},
		{output: "bash: line 1: kill: (123) - No such process\n", want: []Cause{{Kind: Process}}},
		{output: "Permission denied\n", level: Landlock, want: []Cause{{"/tmp", Outside}}},
		{output: "unshare: unshare failed: Operation not permitted\n", want: []Cause{{Kind: Call}}},
		{output: "FAIL: TestX: all is read-only\n"},
		{output: ""},
	}
	for _, test := range tests {
		if test.level == None {
			test.level = Namespace
		}
		p.Network.Full = test.full
		if got := p.Explain(test.level, "/ws", test.output); !slices.Equal(got, test.want) {
			t.Errorf("%q: %v, want %v", test.output, got, test.want)
		}
	}
}

func FuzzExplain(f *testing.F) {
	f.Add("touch: cannot touch '/etc/x y': Read-only file system\n")
	p := &Profile{Writable: []string{"/ws"}, ReadOnly: []string{"/ws/.git/"}, Masked: []string{"/home/u/.ssh"}}
	f.Fuzz(func(t *testing.T, output string) {
		if causes := p.Explain(Landlock, "/ws", output); len(causes) > maxCauses {
			t.Errorf("%d causes", len(causes))
		}
	})
}
