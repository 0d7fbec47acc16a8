package lazy_test

import (
	"testing"

	"github.com/seed-009c0928/agent/core/lazy"
)

func TestRegexp(t *testing.T) {
	never := lazy.Regexp(`(`) // compiled when it is used
	digits := lazy.Regexp(`\d+`)
	if got := digits().FindString("a12"); got != "12" || digits() != digits() {
		t.Errorf("found %q", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("an invalid expression is compiled")
		}
	}()
	never()
}
