// Items one by one: create, read, replace, upsert, delete, patch, time to live, keys of several levels.
using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Net;
using System.Text;
using System.Threading;
using System.Threading.Tasks;
using Microsoft.Azure.Cosmos;
using static Check;

public static class Items
{
    public static async Task Run(Database db)
    {
        Container books = await Books(db, "items", 10);
        await Test("read, replace under an etag, upsert, delete", async () =>
        {
            ItemResponse<Book> read = await books.ReadItemAsync<Book>("b3", new PartitionKey("a3"));
            Equal(read.Resource.bought, new DateTime(2020, 1, 4));
            Equal(read.ETag, read.Resource._etag);
            True(read.RequestCharge > 0, "a read has a charge");
            Book book = read.Resource;
            book.year = 5;
            var same = new ItemRequestOptions { IfMatchEtag = book._etag };
            Equal((await books.ReplaceItemAsync(book, "b3", requestOptions: same)).StatusCode, HttpStatusCode.OK);
            await Refused(HttpStatusCode.PreconditionFailed,
                () => books.ReplaceItemAsync(book, "b3", requestOptions: same));
            Equal((await books.UpsertItemAsync(NewBook(3))).StatusCode, HttpStatusCode.OK);
            Equal((await books.UpsertItemAsync(NewBook(100))).StatusCode, HttpStatusCode.Created);
            await books.DeleteItemAsync<Book>("b100", new PartitionKey("a0"));
            await Refused(HttpStatusCode.NotFound, () => books.ReadItemAsync<Book>("b100", new PartitionKey("a0")));
            await Refused(HttpStatusCode.Conflict, () => books.CreateItemAsync(NewBook(3)));
        });
        await Test("a partition key that isn't the item's is refused", async () =>
        {
            CosmosException e = await Refused(HttpStatusCode.BadRequest,
                () => books.CreateItemAsync(NewBook(99), new PartitionKey("other")));
            Equal(e.SubStatusCode, 1001);
        });
        await Test("a write without content", async () =>
        {
            ItemResponse<Book> made = await books.UpsertItemAsync(NewBook(4),
                requestOptions: new ItemRequestOptions { EnableContentResponseOnWrite = false });
            True(made.Resource == null && made.ETag != null, "an etag and no item");
        });
        await Test("streams", async () =>
        {
            Func<string, Stream> text = s => new MemoryStream(Encoding.UTF8.GetBytes(s));
            var z = new PartitionKey("z");
            Equal((await books.CreateItemStreamAsync(text("{\"id\":\"1\",\"author\":\"z\"}"), z)).StatusCode,
                HttpStatusCode.Created);
            Equal((await books.CreateItemStreamAsync(text("{bad"), z)).StatusCode, HttpStatusCode.BadRequest);
            ResponseMessage read = await books.ReadItemStreamAsync("1", z);
            var unchanged = new ItemRequestOptions { IfNoneMatchEtag = read.Headers.ETag };
            Equal((await books.ReadItemStreamAsync("1", z, unchanged)).StatusCode, HttpStatusCode.NotModified);
            Equal((await books.DeleteItemStreamAsync("1", z)).StatusCode, HttpStatusCode.NoContent);
            Equal((await books.ReadItemStreamAsync("1", z)).StatusCode, HttpStatusCode.NotFound);
        });
        await Test("no partition key, and null", async () =>
        {
            await books.CreateItemAsync(new { id = "none" }, PartitionKey.None);
            await books.CreateItemAsync(new { id = "null", author = (string)null }, PartitionKey.Null);
            Equal((await books.ReadItemAsync<Any>("none", PartitionKey.None)).Resource.id, "none");
            await Refused(HttpStatusCode.NotFound, () => books.ReadItemAsync<Any>("none", PartitionKey.Null));
            await books.DeleteItemAsync<Any>("none", PartitionKey.None);
            await books.DeleteItemAsync<Any>("null", PartitionKey.Null);
        });
        await Test("patch", async () =>
        {
            var key = new PartitionKey("a4");
            ItemResponse<Book> done = await books.PatchItemAsync<Book>("b4", key, new[] {
                PatchOperation.Increment("/year", 2), PatchOperation.Add("/tags/-", "new"),
                PatchOperation.Set("/shelf/row", 7), PatchOperation.Replace("/price", 3.5),
                PatchOperation.Remove("/bought"), PatchOperation.Move("/price", "/cost") });
            Equal(done.Resource.year, 1906);
            Equal(done.Resource.tags.Length, 3);
            Equal(done.Resource.shelf.row, 7);
            await Refused(HttpStatusCode.PreconditionFailed, () => books.PatchItemAsync<Book>("b4", key,
                new[] { PatchOperation.Set("/x", 1) },
                new PatchItemRequestOptions { FilterPredicate = "FROM c WHERE c.year = 1" }));
        });
        await Test("many at once", async () =>
        {
            var keys = Enumerable.Range(0, 10).Select(i => ValueTuple.Create("b" + i, new PartitionKey("a" + i % 5)));
            dynamic container = books; // mcs has other names for the members of tuples than the client's compiler
            FeedResponse<Book> read =
                await (Task<FeedResponse<Book>>)container.ReadManyItemsAsync<Book>(keys.ToList(), null,
                    default(CancellationToken));
            Equal(read.Count, 10);
        });
        await Test("a session's own writes are read", async () =>
        {
            ItemResponse<Book> written = await books.UpsertItemAsync(NewBook(1));
            var session = new ItemRequestOptions { SessionToken = written.Headers.Session };
            Equal((await books.ReadItemAsync<Book>("b1", new PartitionKey("a1"), session)).ETag, written.ETag);
        });
        await Test("time to live", async () =>
        {
            await books.CreateItemAsync(new Expiring { id = "short", author = "t", ttl = 1 });
            await Task.Delay(2500);
            await Refused(HttpStatusCode.NotFound, () => books.ReadItemAsync<Any>("short", new PartitionKey("t")));
        });
        await Test("keys of several levels", async () =>
        {
            Container tree = await db.CreateContainerAsync(
                new ContainerProperties("tree", new List<string> { "/tenant", "/user", "/id" }));
            Func<int, PartitionKeyBuilder> user = i => new PartitionKeyBuilder().Add("t" + i % 2).Add("u" + i % 4);
            for (int i = 0; i < 20; i++)
                await tree.CreateItemAsync(new Any { id = "i" + i, tenant = "t" + i % 2, user = "u" + i % 4 },
                    user(i).Add("i" + i).Build());
            Func<PartitionKey, Task<int>> count = async key => (await All(tree.GetItemQueryIterator<Any>(
                "SELECT * FROM c", null, new QueryRequestOptions { PartitionKey = key }))).Count;
            Equal(await count(new PartitionKeyBuilder().Add("t1").Build()), 10);
            Equal(await count(user(3).Build()), 5);
            Equal((await tree.ReadItemAsync<Any>("i3", user(3).Add("i3").Build())).Resource.user, "u3");
            using (TransactionalBatchResponse read =
                await tree.CreateTransactionalBatch(user(3).Add("i3").Build()).ReadItem("i3").ExecuteAsync())
                Equal(read.GetOperationResultAtIndex<Any>(0).Resource.tenant, "t1");
        });
    }
}
