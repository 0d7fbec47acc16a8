package serve

import (
	"slices"
	"testing"
)

func TestEnviron(t *testing.T) {
	got := environ([]string{"PATH=/bin", "LC_ALL=C", "TOKEN=x", "PATHOLOGY=x", "AWS_PROFILE=x", "HOME=/home/ann", "OTHER=PATH=x"})
	if want := []string{"PATH=/bin", "LC_ALL=C", "HOME=/home/ann"}; !slices.Equal(got, want) {
		t.Errorf("environ = %q, want %q", got, want)
	}
	if environ(nil) == nil {
		t.Error("an empty environment is nil, which would be that of this process")
	}
}
