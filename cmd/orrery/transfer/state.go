package transfer

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// State is how far an import has come. A killed import goes on from it. It holds no secret.
//
// Rows counts the rows at the front of the input that are done: each is written and acknowledged, or is in the file of
// bad rows. Digest is the hash of these rows, by which a changed input is recognised. Rows behind them may have been
// written too; they are sent again, which changes nothing, because a row keeps its identity.
type State struct {
	Job     string `json:"job"` // what is imported to where, and how
	Input   string `json:"input"`
	Rows    int64  `json:"rows"`
	Digest  uint64 `json:"digest,string"`
	Bad     int64  `json:"bad"`
	BadSize int64  `json:"badSize"` // bytes of the file of bad rows
	Whole   bool   `json:"whole"`   // the import is complete
}

// Load reads a state; nil if there is none.
func Load(name string) (*State, error) {
	text, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s := &State{}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", name, err)
	}
	return s, nil
}

// Save replaces a state.
func (s *State) Save(name string) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
