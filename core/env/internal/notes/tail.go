package notes

import (
	"io"
	"os"
	"reflect"
)

// Tail passes output on and keeps its end.
type Tail struct {
	Kept []byte
	to   io.Writer
}

// tailSize is the minimum that is kept.
const tailSize = 8 << 10

// Watch puts a Tail in front of the writer of a command's errors, which may be that of
// its output. It returns nil if there is none. A command writes to a file itself, whose
// end is not kept.
func Watch(stdout, stderr *io.Writer) *Tail {
	at := stderr
	if *stderr == nil {
		at = stdout
	}
	if *at == nil {
		return nil
	}
	t := &Tail{to: *at}
	if _, direct := (*at).(*os.File); direct {
		return t
	}
	if Same(*stdout, *stderr) {
		*stdout = t
	}
	*at = t
	return t
}

// Same reports whether two writers are the same.
func Same(a, b io.Writer) bool {
	return a != nil && b != nil && reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}

// Write implements [io.Writer].
func (t *Tail) Write(b []byte) (int, error) {
	t.Kept = append(t.Kept, b[max(0, len(b)-tailSize):]...)
	if len(t.Kept) > 2*tailSize {
		t.Kept = append(t.Kept[:0], t.Kept[len(t.Kept)-tailSize:]...)
	}
	return t.to.Write(b)
}

// Note appends a line, which is not kept.
func (t *Tail) Note(text string) {
	if len(t.Kept) > 0 && t.Kept[len(t.Kept)-1] != '\n' {
		text = "\n" + text
	}
	_, _ = io.WriteString(t.to, text) // the owner handles output errors
}
