package cmdutil

import (
	"bytes"
	"path/filepath"
	"testing"
	"time"
)

func TestAgeAndSize(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "now", 59 * time.Second: "now", time.Minute: "1m", 119 * time.Minute: "1h", 23 * time.Hour: "23h", 50 * time.Hour: "2d", 1000 * time.Hour: "41d",
	} {
		if got := Age(d); got != want {
			t.Errorf("%s is %s, want %s", d, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1.0 kB", 1499: "1.5 kB", 45_678: "46 kB", 1_200_000: "1.2 MB", 7e12: "7000 GB"} {
		if got := Size(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
	for path, want := range map[string]string{"/h/x": filepath.FromSlash("~/x"), "/h": "~", "/hx": "/hx"} {
		if got := Tilde(filepath.FromSlash(path), filepath.FromSlash("/h")); got != filepath.FromSlash(want) {
			t.Errorf("%s is %s", path, got)
		}
	}
}

func TestTable(t *testing.T) {
	var out bytes.Buffer
	table := NewTable(&out, "NAME", "COUNT")
	table.Row("a long name", 7)
	table.Row("b", "seven")
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	pairs := NewTable(&out)
	pairs.Row("x", "y", "")
	if err := pairs.Flush(); err != nil {
		t.Fatal(err)
	}
	want := "NAME         COUNT\na long name  7\nb            seven\nx  y  \n"
	if out.String() != want {
		t.Errorf("printed\n%q, want\n%q", out.String(), want)
	}
}
