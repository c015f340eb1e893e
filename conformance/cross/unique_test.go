package cross

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// uniqueOn declares a unique index.
func (p *place) uniqueOn(t *testing.T, path string) {
	t.Helper()
	_, err := p.mongo.Indexes().CreateOne(bg, mongo.IndexModel{Keys: bson.D{{Key: path, Value: 1}},
		Options: options.Index().SetUnique(true)})
	ok(t, err)
}

// A unique index of Mongo holds for the writes of all APIs, each of which has its own error for a conflict. What is
// refused isn't stored.
func TestUniqueForAll(t *testing.T) {
	_, ps := places(t)
	for _, origin := range origins {
		t.Run(origin, func(t *testing.T) {
			p := ps[origin]
			p.uniqueOn(t, "v")
			ok(t, p.writeMongo("first", "taken"))
			if err := p.writeSQL("sql", `"taken"`); statusOf(err) != 409 {
				t.Errorf("NoSQL: %v", err)
			}
			err := p.writeTable("table", "", `"taken"`)
			var of *azcore.ResponseError
			if !errors.As(err, &of) || of.StatusCode != 409 {
				t.Errorf("Table: %v", err)
			}
			if err := p.writeMongo("mongo", "taken"); !mongo.IsDuplicateKeyError(err) {
				t.Errorf("Mongo: %v", err)
			}
			// A batch with one conflict stores none of its items.
			if p.keyField == "pk" {
				b := p.sql.NewTransactionalBatch(azcosmos.NewPartitionKeyString("p"))
				b.CreateItem([]byte(`{"id":"b1","pk":"p","v":"free"}`), nil)
				b.CreateItem([]byte(`{"id":"b2","pk":"p","v":"taken"}`), nil)
				r, err := p.sql.ExecuteTransactionalBatch(bg, b, nil)
				ok(t, err)
				if r.Success || len(r.OperationResults) != 2 || r.OperationResults[0].StatusCode != 424 ||
					r.OperationResults[1].StatusCode != 409 {
					t.Errorf("batch: %+v", r)
				}
			}
			// So does a group of entities, whose error begins with the number of the one that is refused.
			group := []aztables.TransactionAction{}
			for i, v := range []string{"free", "taken"} {
				entity := fmt.Appendf(nil, `{"PartitionKey":"p","RowKey":"t%d","v":%q}`, i, v)
				group = append(group, aztables.TransactionAction{ActionType: aztables.TransactionTypeAdd,
					Entity: entity})
			}
			if p.edm {
				_, err := p.table.SubmitTransaction(bg, group, nil)
				if err == nil || !strings.Contains(err.Error(), `"1:The specified entity already exists.`) {
					t.Errorf("group: %v", err)
				}
			}
			if n, err := p.mongo.CountDocuments(bg, bson.D{}); n != 1 || err != nil {
				t.Errorf("%d documents, %v", n, err)
			}
			// Gremlin stores a property as a list of objects with _value.
			ok(t, p.mongo.Indexes().DropAll(bg))
			_, err = p.mongo.DeleteMany(bg, bson.D{})
			ok(t, err)
			p.uniqueOn(t, "v._value")
			ok(t, p.writeGremlin("g1", "taken"))
			if err := p.writeGremlin("g2", "taken"); err == nil || !strings.Contains(err.Error(), "onflict") {
				t.Errorf("Gremlin: %v", err)
			}
		})
	}
}
