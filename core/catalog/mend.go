package catalog

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
)

// Entry is a stored entry of a catalog.
type Entry struct{ Key, Value []byte }

// Amounts by which counters are raised when it is unknown which numbers were given out, so that none is used twice.
const (
	mendedNames       = 1 << 10
	mendedGenerations = 1 << 16
	mendedVersions    = 1 << 20
)

// Mend builds in b a catalog from entries that were saved from a damaged one. It calls lost for each entry that can't
// be used. A container whose database is lost gets a database with another name. Entries of former indexing policies
// are left out, because the index will be rebuilt.
func Mend(saved []Entry, b *kv.Batch, lost func(what string)) error {
	m := mender{b: b, lost: lost, dbs: map[uint32]bool{}, gone: map[uint32]bool{}, colls: map[uint32]bool{}}
	for _, f := range []func(e Entry, kind keys.MetaKind) error{m.databases, m.others} {
		for _, e := range saved {
			if len(e.Key) < 6 {
				continue
			}
			if err := f(e, keys.MetaKind(e.Key[1])); err != nil {
				return err
			}
		}
	}
	if !m.hasAccount {
		m.least.NextDB += mendedNames
		m.least.NextContainer += mendedNames
		m.least.NextGen += mendedGenerations
		m.least.NextVersion += mendedVersions
		m.least.NextResource += mendedNames
		if len(saved) > 0 {
			lost("the account's counters are lost: new databases and containers get numbers far above those that " +
				"were seen")
		}
	}
	if len(m.dbs) > 0 { // as of every catalog with databases
		b.Put(versionKey(), encodeVersion(m.version+1))
	}
	a := m.account
	a.Format = kv.Format // everything of a container is derived again from its items
	a.NextDB = max(a.NextDB, m.least.NextDB, 0x10000001)
	a.NextContainer = max(a.NextContainer, m.least.NextContainer, 1)
	a.NextGen = max(a.NextGen, m.least.NextGen, 1)
	a.NextVersion = max(a.NextVersion, m.least.NextVersion, 1)
	a.NextResource = max(a.NextResource, m.least.NextResource)
	return m.put(keys.AppendMeta(nil, keys.MetaAccount, 0, ""), a)
}

type mender struct {
	b              *kv.Batch
	lost           func(string)
	dbs            map[uint32]bool
	gone           map[uint32]bool // databases that were dropped, whose entries were to be removed
	colls          map[uint32]bool // numbers of containers
	account, least account
	hasAccount     bool
	version        uint64 // of the saved catalog
}

func (m *mender) put(key []byte, v any) error {
	e, err := encode(v)
	if err == nil {
		m.b.Put(key, e)
	}
	return err
}

// databases reads the account and the databases, and notes which were dropped.
func (m *mender) databases(e Entry, kind keys.MetaKind) error {
	switch kind {
	case keys.MetaDroppedDatabase:
		_, num, _, _ := keys.ParseMeta(e.Key)
		m.gone[num] = true
	case keys.MetaAccount:
		m.hasAccount = decode(e.Value, &m.account) == nil
	case keys.MetaVersion:
		m.version, _ = decodeVersion(e.Value) // a lost one counts as 0
	case keys.MetaDatabase:
		d := &Database{}
		if err := decode(e.Value, d); err != nil || !bytes.Equal(databaseKey(d), e.Key) {
			m.lost(fmt.Sprintf("the definition of database %q can't be read", e.Key[6:]))
			return nil
		}
		m.dbs[d.Num] = true
		m.least.NextDB = max(m.least.NextDB, d.Num+1)
		m.least.NextVersion = max(m.least.NextVersion, d.Version+1)
		return m.put(e.Key, d)
	}
	return nil
}

// database makes sure that a database exists, for an entry that belongs to it.
func (m *mender) database(num uint32) error {
	if m.dbs[num] {
		return nil
	}
	m.dbs[num] = true
	d := &Database{ID: fmt.Sprintf("recovered-%08x", num), Num: num}
	m.lost(fmt.Sprintf("the name of a database is lost: it is %q now", d.ID))
	m.least.NextDB = max(m.least.NextDB, num+1)
	return m.put(databaseKey(d), d)
}

// others copies everything that belongs to a database, and the counters of containers.
func (m *mender) others(e Entry, kind keys.MetaKind) error {
	if _, num, _, _ := keys.ParseMeta(e.Key); kind != keys.MetaCounter && m.gone[num] {
		return nil
	}
	switch kind {
	case keys.MetaContainer:
		k, err := decodeContainer(e.Value, "")
		if err != nil || !bytes.Equal(containerKey(k), e.Key) {
			m.lost(fmt.Sprintf("the definition of container %q can't be read, and with it its items", e.Key[6:]))
			return nil
		}
		k.Former = nil
		m.colls[k.Num] = true
		m.least.NextContainer = max(m.least.NextContainer, k.Num&^(1<<31)+1)
		m.least.NextGen = max(m.least.NextGen, k.Gen+1)
		m.least.NextVersion = max(m.least.NextVersion, k.Version+1)
		if err := m.database(k.DBNum); err != nil {
			return err
		}
		v, err := encodeContainer(k)
		if err == nil {
			m.b.Put(e.Key, v)
		}
		return err
	case keys.MetaCounter:
		m.b.Put(e.Key, e.Value)
	case keys.MetaUser, keys.MetaPermission, keys.MetaClientKey, keys.MetaLogin, keys.MetaRole, keys.MetaProcedure,
		keys.MetaTrigger, keys.MetaFunction:
		r := &Resource{Kind: kind}
		if err := decode(e.Value, r); err != nil || !bytes.Equal(r.key(), e.Key) {
			m.lost(fmt.Sprintf("a resource %q of a database can't be read", e.Key[6:]))
			return nil
		}
		if slices.Contains(programKinds, kind) && !m.colls[r.Parent] {
			m.lost(fmt.Sprintf("the container of program %q is lost, and with it the program", r.ID))
			return nil
		}
		m.least.NextResource = max(m.least.NextResource, r.Num+1)
		m.least.NextVersion = max(m.least.NextVersion, r.Version+1)
		if err := m.database(r.DBNum); err != nil {
			return err
		}
		return m.put(e.Key, r)
	}
	return nil
}
