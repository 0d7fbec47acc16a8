package early

import "unsafe"

// Env is the environment variable that holds the token.
const Env = "AGENT_SANDBOX_HELPER"

// TokenSize is the length of a token in bytes.
const TokenSize = 26

// FD is the socket's descriptor, in the fork server and in its helpers. A fourth
// file of a helper follows it.
const FD = 3

// The failing steps that are none of the plan's.
const (
	StepPlan  = 0xfffffffe // the plan cannot be read
	StepStart = 0xffffffff // the command cannot be started
)

// Plan is what a helper does.
type Plan struct {
	Steps []Step
	Path  string   // the command's program; empty: none, the helper ends after the steps
	Args  []string // with the program's name
	Env   []string
	// Init makes the helper stay as the first process of its PID namespace:
	// it starts the command as a child, reaps orphans and reports the end.
	Init bool
	// Ahead makes the helper get another plan after the steps. Their results stay in
	// their slots. It has no command, and gets no files.
	Ahead bool
	// Hold makes the helper stay after the steps, and fork helpers as the server does:
	// a holder of namespaces. It has no command, and gets no files.
	Hold bool
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

// An image is a plan as the helper's memory: it is read and run as it is. What
// is called an offset is a distance from its begin, which the helper turns into
// a pointer.

// head begins an image.
type head struct {
	steps uintptr // offset of the first call
	count uintptr // calls
	path  uintptr // offset, or 0
	args  uintptr // offset of offsets; the last is 0
	env   uintptr // the same
	init  uintptr // 1 = Plan.Init
	hold  uintptr // 1 = Plan.Hold
	ahead uintptr // 1 = Plan.Ahead
}

// call is a step.
type call struct {
	number uintptr
	args   [6]uintptr
	ignore [errnos / 64]uint64 // a bit for each error
	// One bit for each argument: whether it is a slot, an offset, and the offset of
	// a filter, whose second word is an offset, too.
	slots, offsets, filters uint8
	keep                    uint8
	send                    bool
}

// errnos are more than there are errors.
const errnos = 192

// Image encodes the plan.
func (p *Plan) Image() []byte {
	e := &encoder{b: make([]byte, unsafe.Sizeof(head{}), 64<<10)}
	h := head{count: uintptr(len(p.Steps))}
	calls := make([]call, len(p.Steps))
	for i := range p.Steps {
		calls[i] = e.call(&p.Steps[i])
	}
	e.align()
	h.steps = e.place(bytesOf(calls))
	if p.Path != "" {
		h.path, h.args, h.env = e.text(p.Path), e.texts(p.Args), e.texts(p.Env)
	}
	if p.Init {
		h.init = 1
	}
	if p.Hold {
		h.hold = 1
	}
	if p.Ahead {
		h.ahead = 1
	}
	copy(e.b, bytesOf([]head{h}))
	return e.b
}

type encoder struct{ b []byte }

func (e *encoder) call(s *Step) call {
	c := call{number: s.Call, keep: s.Keep, send: s.Send}
	for i, a := range s.Args {
		bit := uint8(1) << i
		switch a.Kind {
		case Number:
			c.args[i] = uintptr(a.Value)
		case Slot:
			c.args[i] = uintptr(a.Value % Slots)
			c.slots |= bit
		case Bytes:
			c.args[i] = e.data(a.Data)
			c.offsets |= bit
		case Filter: // struct sock_fprog is a length of two bytes and a pointer
			program := e.data(a.Data)
			c.args[i] = e.place(bytesOf([]uintptr{uintptr(len(a.Data) / 8), program}))
			c.offsets |= bit
			c.filters |= bit
		}
	}
	for _, errno := range s.Ignore {
		c.ignore[errno/64%uint16(len(c.ignore))] |= 1 << (errno % 64)
	}
	return c
}

// data places what may be a C structure.
func (e *encoder) data(b []byte) uintptr {
	e.align()
	defer e.align()
	return e.place(b)
}

func (e *encoder) text(s string) uintptr {
	at := e.place([]byte(s))
	e.b = append(e.b, 0)
	return at
}

func (e *encoder) texts(list []string) uintptr {
	at := make([]uintptr, 0, len(list)+1)
	for _, s := range list {
		at = append(at, e.text(s))
	}
	e.align()
	return e.place(bytesOf(append(at, 0)))
}

func (e *encoder) place(b []byte) uintptr {
	at := len(e.b)
	e.b = append(e.b, b...)
	return uintptr(at)
}

func (e *encoder) align() {
	for len(e.b)%8 != 0 {
		e.b = append(e.b, 0)
	}
}

// Word is what the size of an image and the flags of a request are sent as.
func Word(n uintptr) []byte { return bytesOf([]uintptr{n}) }

// bytesOf returns the memory of values without pointers.
func bytesOf[T any](values []T) []byte {
	var zero T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), uintptr(len(values))*unsafe.Sizeof(zero))
}
