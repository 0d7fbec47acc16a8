package early

import "testing"

func TestMessageRoundTrip(t *testing.T) {
	want := Message{Kind: Exited, A: 0x01020304, B: 1<<32 - 1}
	var b [MessageSize]byte
	want.encode(&b)
	if got := DecodeMessage(b[:]); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
