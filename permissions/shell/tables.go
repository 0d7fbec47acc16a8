package shell

// operands says what a program does with its operands.
type operands uint8

const (
	nothing operands = iota // it takes none
	words                   // they are no paths
	names                   // it looks at them: names, sizes, times
	files                   // it reads them
)

// program is what is known of a program that changes nothing, as long as it
// gets only the options that stand here.
type program struct {
	operands operands
	// options are those that are harmless, in the notation of options.go.
	options string
	// harmless says that no other option could do harm either, so that a word
	// which may turn out to be an option does not matter.
	harmless bool
	// single says that long options have one dash.
	single bool
	// first says that options end at the first operand.
	first bool
	// most is the number of operands that may be given, 0 for any number;
	// beyond says what more of them would mean.
	most   int
	beyond string
	// refused says why some of the options that are left out are.
	refused map[string]string
}

var programs = map[string]program{
	"cat": {operands: files, harmless: true, options: "A b e E n s t T u v show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting help version"},
}
