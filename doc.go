// Package cairn is an embedded, ordered, transactional key-value store.
package cairn
