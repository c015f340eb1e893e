// Stored procedures, triggers and user-defined functions.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Net;
using System.Threading.Tasks;
using Microsoft.Azure.Cosmos;
using Microsoft.Azure.Cosmos.Scripts;
using static Check;

public static class Programs
{
    public static async Task Run(Database db)
    {
        Container books = await Books(db, "programs", 5);
        Scripts scripts = books.Scripts;
        var key = new PartitionKey("a1");
        await Test("a stored procedure", async () =>
        {
            await scripts.CreateStoredProcedureAsync(new StoredProcedureProperties("double",
                "function (n) { console.log('asked'); getContext().getResponse().setBody({ n: n * 2 }); }"));
            StoredProcedureExecuteResponse<Any> done = await scripts.ExecuteStoredProcedureAsync<Any>("double", key,
                new dynamic[] { 21 }, new StoredProcedureRequestOptions { EnableScriptLogging = true });
            Equal(done.Resource.n, 42);
            Equal(WebUtility.UrlDecode(done.ScriptLog), "asked");
            Equal((await All(scripts.GetStoredProcedureQueryIterator<StoredProcedureProperties>())).Count, 1);
            await scripts.ReplaceStoredProcedureAsync(
                new StoredProcedureProperties("double", "function () { throw new Error('no more'); }"));
            CosmosException e = await Refused(HttpStatusCode.BadRequest,
                () => scripts.ExecuteStoredProcedureAsync<Any>("double", key, null));
            True(e.Message.Contains("no more"), e.Message);
            await scripts.DeleteStoredProcedureAsync("double");
            await Refused(HttpStatusCode.NotFound, () => scripts.ExecuteStoredProcedureAsync<Any>("double", key, null));
        });
        await Test("a trigger before a write", async () =>
        {
            await scripts.CreateTriggerAsync(new TriggerProperties {
                Id = "stamp", TriggerType = TriggerType.Pre, TriggerOperation = TriggerOperation.Create,
                Body = "function () { var q = getContext().getRequest(), b = q.getBody(); b.stamped = true; " +
                    "q.setBody(b); }" });
            var stamp = new ItemRequestOptions { PreTriggers = new List<string> { "stamp" } };
            ItemResponse<Any> made = await books.CreateItemAsync(new Any { id = "s", author = "a1" }, key, stamp);
            Equal(made.Resource.stamped, true);
        });
        await Test("a function in a query", async () =>
        {
            await scripts.CreateUserDefinedFunctionAsync(
                new UserDefinedFunctionProperties { Id = "twice", Body = "function (x) { return x * 2; }" });
            Equal((await All(books.GetItemQueryIterator<int>(
                "SELECT VALUE udf.twice(c.year) FROM c WHERE c.id = 'b1'")))[0], 3802);
        });
    }
}
