package display

import (
	"testing"
	"time"
)

func TestNumbers(t *testing.T) {
	t.Parallel()
	for in, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -100: "-100"} {
		if got := thousands(in); got != want {
			t.Errorf("thousands(%d) = %q, want %q", in, got, want)
		}
	}
	for in, want := range map[time.Duration]string{
		5 * time.Millisecond: "5 ms", 1500 * time.Millisecond: "1.5 s", 42 * time.Second: "42 s",
		90 * time.Second: "1 m 30 s", 2*time.Hour + 5*time.Minute: "2 h 05 m",
	} {
		if got := Duration(in); got != want {
			t.Errorf("Duration(%v) = %q, want %q", in, got, want)
		}
	}
	for in, want := range map[int]string{999: "999", 13_700: "13.7k", 1_200_000: "1.2M"} {
		if got := Count(in); got != want {
			t.Errorf("Count(%d) = %q, want %q", in, got, want)
		}
	}
	if one, many := Plural(1, "line"), Plural(1200, "line"); one != "1 line" || many != "1,200 lines" {
		t.Errorf("Plural: %q, %q", one, many)
	}
}
