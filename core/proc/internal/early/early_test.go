package early

import (
	"bytes"
	"math"
	"reflect"
	"testing"
)

func TestPlanRoundTrip(t *testing.T) {
	plans := []Plan{
		{},
		{Path: "/bin/true", Init: true, Drop: []string{"A", "B"}},
		{Steps: []Step{
			{Call: 165, Keep: 3, Send: true, Ignore: []uint16{1, 22}, Args: []Arg{
				{Value: math.MaxUint64}, {Kind: Slot, Value: 3}, {Kind: Bytes, Data: []byte("/a\x00")}, {Kind: Filter, Data: make([]byte, 16)},
			}},
			{Call: 1},
		}},
	}
	for _, want := range plans {
		b := want.Append([]byte("before"))
		if !bytes.HasPrefix(b, []byte("before")) || get(b[6:14]) != uint64(len(b)-14) {
			t.Fatalf("the length is wrong: %x", b)
		}
		got, ok := Decode(b[14:])
		if !ok {
			t.Fatal("not decoded")
		}
		normalize(got)
		if normalize(&want); !reflect.DeepEqual(*got, want) {
			t.Errorf("got  %+v\nwant %+v", *got, want)
		}
		for cut := range len(b) - 14 {
			if _, ok := Decode(b[14 : 14+cut]); ok {
				t.Errorf("decoded the first %d of %d bytes", cut, len(b)-14)
			}
		}
		if _, ok := Decode(append(b[14:], 0)); ok {
			t.Error("decoded with a byte too many")
		}
	}
}

// normalize makes empty slices nil.
func normalize(p *Plan) {
	for i := range p.Steps {
		for j := range p.Steps[i].Args {
			if a := &p.Steps[i].Args[j]; len(a.Data) == 0 {
				a.Data = nil
			}
		}
	}
}

func TestMessageRoundTrip(t *testing.T) {
	want := Message{Kind: Exited, A: 0x01020304, B: math.MaxUint32}
	if got := DecodeMessage(want.Encode()); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func FuzzDecode(f *testing.F) {
	p := Plan{Path: "/bin/true", Init: true, Steps: []Step{{Call: 1, Args: []Arg{{Kind: Bytes, Data: []byte("x")}}}}}
	f.Add(p.Append(nil)[8:])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, ok := Decode(b)
		if !ok {
			return
		}
		again, ok := Decode(p.Append(nil)[8:])
		if !ok || !reflect.DeepEqual(p, again) {
			t.Errorf("%+v became %+v", p, again)
		}
	})
}
