package plugins

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/seed-009c0928/agent/sdk/toolproto"
)

// ProtocolSource returns the text of plugin.proto, which defines the wire
// protocol.
func ProtocolSource() string { return toolproto.Source }

// ProtocolDescriptor returns plugin.proto as an encoded FileDescriptorSet, for
// languages that do not compile it.
func ProtocolDescriptor() ([]byte, error) {
	file := protodesc.ToFileDescriptorProto(toolproto.File_plugin_proto)
	return proto.MarshalOptions{Deterministic: true}.Marshal(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{file}})
}

// CheckName reports whether name is a valid plugin name.
func CheckName(name string) error {
	if !namePattern().MatchString(name) || slices.Contains(reserved, name) {
		return fmt.Errorf("%q cannot be a plugin's name: use at most 40 lower-case letters, digits and -, starting with a letter, and none of the agent's own names", name)
	}
	return nil
}
