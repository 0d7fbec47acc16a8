package toolname

import "testing"

func TestFind(t *testing.T) {
	names := []string{"read_file", "shell", "a-b", "a_b"}
	for name, want := range map[string]string{
		"read_file": "read_file", "functions.read_file": "read_file", "Read-File": "read_file", " default_api.shell ": "shell",
		"a_b": "a_b", "A_B": "", "server.shell": "", "": "",
	} {
		if got, ok := Find(name, names); got != want || ok != (want != "") {
			t.Errorf("Find(%q) = %q, %t, want %q", name, got, ok, want)
		}
	}
}
