package early

// Env is the environment variable that holds the token. The command does not
// get it.
const Env = "AGENT_SANDBOX_HELPER"

// TokenSize is the length of a token in bytes.
const TokenSize = 26

// FD is the helper's end of the socket pair. Further files of the helper
// follow it.
const FD = 3

// The failing steps that are none of the plan's.
const (
	StepPlan  = 0xfffffffe // the plan cannot be read
	StepStart = 0xffffffff // the command cannot be started
)

// Plan is what the helper does.
type Plan struct {
	Steps []Step
	Path  string // the command's program; empty: none, the helper ends after the steps
	// Init makes the helper stay as the first process of its PID namespace:
	// it starts the command as a child, reaps orphans and reports the end.
	Init bool
	Drop []string // names of environment variables that are the helper's alone
}

// Step is one system call.
type Step struct {
	Call uintptr // its number
	Args []Arg   // at most six
	Keep uint8   // the slot that the result is kept in; 0 = none
	Send bool    // the result is a socket for the other side
	// Ignore are errors that do not matter. The slot then holds no descriptor.
	Ignore []uint16
}

// Arg is an argument of a system call.
type Arg struct {
	Kind  ArgKind
	Value uint64 // of Number and Slot
	Data  []byte // of Bytes and Filter
}

// ArgKind tells arguments apart.
type ArgKind uint8

// The kinds of arguments.
const (
	Number ArgKind = iota
	Slot           // the result of an earlier step
	Bytes          // a pointer to a copy of Data
	Filter         // a pointer to a struct sock_fprog for the instructions in Data
)

// Slots is the number of slots; the first is never used.
const Slots = 255

// Append encodes the plan: its length in eight bytes, then the plan.
func (p *Plan) Append(to []byte) []byte {
	e := encoder{b: append(to, make([]byte, 8)...)}
	start := len(e.b)
	e.data([]byte(p.Path))
	e.flag(p.Init)
	e.number(uint64(len(p.Drop)))
	for _, name := range p.Drop {
		e.data([]byte(name))
	}
	e.number(uint64(len(p.Steps)))
	for _, s := range p.Steps {
		e.number(uint64(s.Call))
		e.number(uint64(s.Keep))
		e.flag(s.Send)
		e.number(uint64(len(s.Ignore)))
		for _, errno := range s.Ignore {
			e.number(uint64(errno))
		}
		e.number(uint64(len(s.Args)))
		for _, a := range s.Args {
			e.number(uint64(a.Kind))
			e.number(a.Value)
			e.data(a.Data)
		}
	}
	put(e.b[start-8:], uint64(len(e.b)-start))
	return e.b
}

// Decode decodes what Append made, without the length. It reports false for
// anything else.
func Decode(b []byte) (*Plan, bool) {
	d := decoder{b: b, ok: true}
	p := &Plan{Path: string(d.data()), Init: d.flag()}
	for range d.count() {
		p.Drop = append(p.Drop, string(d.data()))
	}
	for range d.count() {
		s := Step{Call: uintptr(d.number()), Keep: uint8(d.number()), Send: d.flag()}
		for range d.count() {
			s.Ignore = append(s.Ignore, uint16(d.number()))
		}
		for range d.count() {
			s.Args = append(s.Args, Arg{Kind: ArgKind(d.number()), Value: d.number(), Data: d.data()})
		}
		if !d.ok || len(s.Args) > 6 {
			return nil, false
		}
		p.Steps = append(p.Steps, s)
	}
	return p, d.ok && len(d.b) == 0
}

type encoder struct{ b []byte }

// number writes seven bits a byte, the low ones first.
func (e *encoder) number(n uint64) {
	for ; n >= 0x80; n >>= 7 {
		e.b = append(e.b, byte(n)|0x80)
	}
	e.b = append(e.b, byte(n))
}

func (e *encoder) flag(f bool) {
	n := uint64(0)
	if f {
		n = 1
	}
	e.number(n)
}

func (e *encoder) data(d []byte) {
	e.number(uint64(len(d)))
	e.b = append(e.b, d...)
}

type decoder struct {
	b  []byte
	ok bool
}

func (d *decoder) number() (n uint64) {
	for shift := 0; shift < 64; shift += 7 {
		if len(d.b) == 0 {
			break
		}
		c := d.b[0]
		d.b = d.b[1:]
		n |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return n
		}
	}
	d.ok, d.b = false, nil
	return 0
}

func (d *decoder) flag() bool { return d.number() == 1 }

// count reads the number of things that follow, each of at least one byte.
func (d *decoder) count() int {
	n := d.number()
	if n > uint64(len(d.b)) {
		d.ok, d.b = false, nil
		return 0
	}
	return int(n)
}

func (d *decoder) data() []byte {
	n := d.count()
	data := d.b[:n:n]
	d.b = d.b[n:]
	return data
}

// put writes a number into eight bytes.
func put(b []byte, n uint64) {
	for i := range 8 {
		b[i] = byte(n >> (8 * i))
	}
}

// get reads what put wrote.
func get(b []byte) (n uint64) {
	for i := range 8 {
		n |= uint64(b[i]) << (8 * i)
	}
	return n
}
