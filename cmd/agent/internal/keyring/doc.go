// Package keyring stores keys in the operating system's keyring: the Secret
// Service on Linux and the BSDs, the Keychain on macOS, the Credential Manager
// on Windows. It wraps github.com/zalando/go-keyring and never starts a keyring.
package keyring
