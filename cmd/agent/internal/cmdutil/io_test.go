package cmdutil

import (
	"bytes"
	"fmt"
	"testing"
)

func TestCheckedWriter(t *testing.T) {
	var out bytes.Buffer
	w := &CheckedWriter{Writer: &out}
	if _, err := fmt.Fprint(w, "one"); err != nil || w.Err != nil {
		t.Fatalf("%v, %v", err, w.Err)
	}
	calls := 0
	w.Writer = writerFunc(func([]byte) (int, error) { calls++; return 0, fmt.Errorf("failure %d", calls) })
	for range 2 {
		if _, err := fmt.Fprint(w, "two"); err == nil || err != w.Err || err.Error() != "failure 1" {
			t.Errorf("error %v, kept %v", err, w.Err)
		}
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
