package lazy_test

import (
	"testing"

	"github.com/seed-009c0928/agent/core/lazy"
)

func TestRegexp(t *testing.T) {
	never := lazy.Regexp(`(`) // compiled when it is used
	digits := lazy.Regexp(`\d+`)
	first, again := digits(), digits()
	if got := first.FindString("a12"); got != "12" || first != again {
		t.Errorf("found %q", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("an invalid expression is compiled")
		}
	}()
	never()
}
