// Transactional batches and bulk, whose operations this client sends as HybridRow.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Net;
using System.Threading.Tasks;
using Microsoft.Azure.Cosmos;
using static Check;

public static class Batches
{
    const HttpStatusCode failedDependency = (HttpStatusCode)424;

    public static async Task Run(Database db)
    {
        Container books = await Books(db, "batches", 0);
        var key = new PartitionKey("a");
        Func<TransactionalBatch> batch = () => books.CreateTransactionalBatch(key);

        await Test("all kinds of operations", async () =>
        {
            using (TransactionalBatchResponse done = await batch().CreateItem(NewBook(1, "a"))
                .UpsertItem(NewBook(2, "a")).CreateItem(NewBook(3, "a")).ReadItem("b1")
                .ReplaceItem("b2", NewBook(2, "a")).PatchItem("b3", new[] { PatchOperation.Set("/year", 1) })
                .DeleteItem("b1").ExecuteAsync())
            {
                True(done.IsSuccessStatusCode, done.StatusCode + " " + done.ErrorMessage);
                Equal(string.Join(" ", done.Select(r => (int)r.StatusCode)), "201 201 201 200 200 200 204");
                Equal(done.GetOperationResultAtIndex<Book>(3).Resource.shelf.code, "s1");
                Equal(done.GetOperationResultAtIndex<Book>(5).Resource.year, 1);
                Equal(done[1].ETag, done.GetOperationResultAtIndex<Book>(1).Resource._etag);
                True(done.RequestCharge > 0, "a batch has a charge");
            }
        });
        await Test("one operation fails and nothing is done", async () =>
        {
            using (TransactionalBatchResponse done = await batch().CreateItem(NewBook(4, "a"))
                .CreateItem(NewBook(3, "a")).ReadItem("b3").ExecuteAsync())
            {
                Equal(done.StatusCode, HttpStatusCode.Conflict);
                Equal(string.Join(" ", done.Select(r => (int)r.StatusCode)), "424 409 424");
            }
            await Refused(HttpStatusCode.NotFound, () => books.ReadItemAsync<Book>("b4", key));
        });
        await Test("etags, and results without items", async () =>
        {
            var never = new TransactionalBatchItemRequestOptions { IfMatchEtag = "\"never\"" };
            using (TransactionalBatchResponse done =
                await batch().ReplaceItem("b3", NewBook(3, "a"), never).ExecuteAsync())
                Equal(done[0].StatusCode, HttpStatusCode.PreconditionFailed);
            var bare = new TransactionalBatchItemRequestOptions { EnableContentResponseOnWrite = false };
            using (TransactionalBatchResponse done =
                await batch().UpsertItem(NewBook(5, "a"), bare).UpsertItem(NewBook(6, "a")).ExecuteAsync())
            {
                True(done[0].ResourceStream == null && done[0].ETag != null, "an etag without an item");
                True(done[1].ResourceStream != null, "an item");
            }
        });
        await Test("a hundred operations", async () =>
        {
            TransactionalBatch many = batch();
            for (int i = 0; i < 100; i++) many.CreateItem(NewBook(300 + i, "a"));
            using (TransactionalBatchResponse done = await many.ExecuteAsync())
            {
                True(done.IsSuccessStatusCode, done.StatusCode + " " + done.ErrorMessage);
                Equal(done.GetOperationResultAtIndex<Book>(99).Resource.id, "b399");
            }
        });
        await Test("bulk", async () =>
        {
            using (CosmosClient client = Connect(bulk: true))
            {
                await db.CreateContainerAsync("bulk", "/pk", 30000);
                Container bulk = client.GetContainer(db.Id, "bulk");
                Func<int, PartitionKey> of = i => new PartitionKey("p" + i % 50);
                Func<int, int, Any> item = (i, v) => new Any { id = "i" + i, pk = "p" + i % 50, v = v };
                ItemResponse<Any>[] done = await Each(500, i => bulk.CreateItemAsync(item(i, i), of(i)));
                True(done.All(r => r.StatusCode == HttpStatusCode.Created && r.RequestCharge > 0), "all are created");
                await Each(100, i => bulk.UpsertItemAsync(item(i, -i), of(i)));
                await Each(100, i => bulk.PatchItemAsync<Any>("i" + i, of(i),
                    new[] { PatchOperation.Increment("/v", 1000) }));
                done = await Each(500, i => bulk.ReadItemAsync<Any>("i" + i, of(i)));
                for (int i = 0; i < 500; i++) Equal(done[i].Resource.v, i < 100 ? 1000 - i : i);
                await Each(100, i => bulk.DeleteItemAsync<Any>("i" + i, of(i)));
                await Refused(HttpStatusCode.Conflict, () => bulk.CreateItemAsync(item(200, 0), of(200)));
                await Refused(HttpStatusCode.NotFound, () => bulk.ReadItemAsync<Any>("i7", of(7)));
                Equal((await All(bulk.GetItemQueryIterator<int>("SELECT VALUE COUNT(1) FROM c")))[0], 400);
            }
        });
        await Test("all items of a partition key are deleted", async () =>
        {
            Equal((await books.DeleteAllItemsByPartitionKeyStreamAsync(key)).StatusCode, HttpStatusCode.OK);
        });
    }

    static Task<ItemResponse<Any>[]> Each(int count, Func<int, Task<ItemResponse<Any>>> call)
    {
        return Task.WhenAll(Enumerable.Range(0, count).Select(call));
    }
}
