package early

// MessageSize is the length of each message that the helper sends.
const MessageSize = 9

// MessageKind tells messages apart.
type MessageKind byte

// The messages.
const (
	Forked    MessageKind = 'C'
	Listening MessageKind = 'L'
	Started   MessageKind = 'S'
	Failed    MessageKind = 'F'
	Exited    MessageKind = 'X'
)

// Message is what the fork server and its helpers send.
type Message struct {
	Kind MessageKind
	A, B uint32 // see the package
}

// encode writes the message into b.
//
//go:nosplit
func (m Message) encode(b *[MessageSize]byte) {
	b[0] = byte(m.Kind)
	for i := range 4 {
		b[1+i], b[5+i] = byte(m.A>>(8*i)), byte(m.B>>(8*i))
	}
}

// DecodeMessage decodes a message of MessageSize bytes.
func DecodeMessage(b []byte) Message {
	m := Message{Kind: MessageKind(b[0])}
	for i := range 4 {
		m.A |= uint32(b[1+i]) << (8 * i)
		m.B |= uint32(b[5+i]) << (8 * i)
	}
	return m
}
